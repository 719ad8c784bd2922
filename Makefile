.PHONY: check test test-fast test-slow format docs

check:  ## format, lint and types, as CI does
	ruff format --check
	ruff check
	mypy

test:  ## the tests that CI runs
	pytest

test-fast:  ## the part that a contributor needs, in a minute on two cores; it names what it leaves out
	pytest --fast

test-slow:  ## the long ones, without those that need a GPU
	pytest -m "slow and not cuda"

format:  ## mend what can be mended
	ruff check --fix
	ruff format

docs:  ## the site in build/site, strictly: a broken link or reference is an error
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. mkdocs build --strict --quiet
