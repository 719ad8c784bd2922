"""Changes the settings of a run as somebody would who knows how they are sealed: in `config.json`; and manifests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alphazero.storage.files import write_sealed_json
from alphazero.storage.manifest import CONFIG, CONFIG_SEAL, read_config


def reseal_config(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the settings and seals them again."""
    config = read_config(run)
    change(config)
    write_sealed_json(run / CONFIG, config, CONFIG_SEAL)


def reseal_manifest(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes a manifest and seals it again."""
    manifest = json.loads(path.read_text())
    change(manifest)
    write_sealed_json(path, manifest, "manifest_sha256")


def without_seals(text: str) -> str:
    """Lines of JSON as an older version wrote them, without their checksums."""
    return re.sub(r'"line_sha256": "[0-9a-f]{64}", ', "", text)
