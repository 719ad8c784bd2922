.PHONY: check test test-slow format

check:  ## format, lint and types, as CI does
	ruff format --check
	ruff check
	mypy

test:  ## the tests that CI runs
	pytest

test-slow:  ## the long ones, without those that need a GPU
	pytest -m "slow and not cuda"

format:  ## mend what can be mended
	ruff check --fix
	ruff format
