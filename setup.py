"""Package data of the framework; settings of the tools are in pyproject.toml, tested versions in constraints.txt."""

import runpy
from pathlib import Path

from setuptools import Distribution, find_packages, setup

HAS_OPENVINO = (
    "sys_platform == 'linux' and (platform_machine == 'x86_64' or platform_machine == 'aarch64')"
    " or sys_platform == 'win32' and platform_machine == 'AMD64'"
    " or sys_platform == 'darwin' and platform_machine == 'arm64'"
)
"""Where OpenVINO can be installed; elsewhere torch answers for networks."""


class MaybeCompiled(Distribution):
    """A wheel with code that `alphazero compile` has made is for this system and this version of Python alone."""

    def has_ext_modules(self):
        return any(Path("alphazero/compiled").glob("*/*"))


setup(
    distclass=MaybeCompiled,
    name="alphazero-framework",
    version=runpy.run_path("alphazero/_version.py")["__version__"],
    description="Turns the rules of a game into a strong player by AlphaZero self-play",
    author="The alphazero authors",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    # the shipped nets lie in pretrained/ in the tree and in alphazero/pretrained/ where the wheel is installed
    packages=[*find_packages(include=["alphazero", "alphazero.*", "games", "games.*"]), "alphazero.pretrained"],
    package_dir={"alphazero.pretrained": "pretrained"},
    package_data={
        "alphazero": ["py.typed", "compiled/*/*.nb?", "wasm/page/*", "web/page/*"],
        "alphazero.pretrained": ["README.md", "*/*.json", "*/*.safetensors"],
        "games": ["*/data/*"],
    },
    entry_points={"console_scripts": ["alphazero = alphazero.commands.program:main"]},
    install_requires=[
        "coloredlogs>=15",
        "filelock>=3.13",
        "llvmlite>=0.44",
        "msgspec>=0.19",
        "numba>=0.61",
        "numpy>=2.0",
        f"openvino>=2025.4; {HAS_OPENVINO}",
        "safetensors>=0.4",
        "scipy>=1.13",
        "torch>=2.10",
        "tqdm>=4.66",
        "tyro>=0.9",
    ],
    extras_require={
        "test": [
            "chess>=1.11.2",  # GPL, as pyffish is: for the tests alone, never for the package
            "choix>=0.3.5",
            "fastapi>=0.115",
            "h11>=0.14",
            "hypothesis>=6.130",
            "ipykernel>=6.29",
            "matplotlib>=3.9",
            "mypy>=1.15",
            "nbclient>=0.10",
            "nbformat>=5.10",
            "onnx>=1.17",
            "onnxruntime>=1.20",
            "onnxscript>=0.3",
            "open_spiel>=1.6",
            "playwright>=1.49",
            "pydraughts>=0.6.7",
            "pyffish>=0.0.90",
            "pytest>=8",
            "pytest-xdist>=3.6",
            "ray>=2.52",
            "ruff>=0.12",
            "setuptools>=77",
            "sgfmill>=1.1.1",
            "uvicorn>=0.54",
            "wandb>=0.19",
            "websockets>=14",
        ],
        "docs": ["griffelib>=2.0", "mkdocs-jupyter>=0.25", "mkdocs-material>=9.6", "mkdocstrings[python]>=0.29"],
        "plot": ["matplotlib>=3.9"],
        "onnx": ["onnx>=1.17", "onnxruntime>=1.20", "onnxscript>=0.3"],
        "web": ["fastapi>=0.115", "h11>=0.14", "uvicorn>=0.54", "websockets>=14"],
        "openspiel": ["open_spiel>=1.6"],
        "cuda": ["numba-cuda[cu13]>=0.30", "numpy<2.5"],  # numba-cuda 0.30.4 fails with numpy 2.5
        "tensorboard": ["tensorboard>=2.18"],
        "wandb": ["wandb>=0.19"],
        "ray": ["ray>=2.52"],
    },
)
