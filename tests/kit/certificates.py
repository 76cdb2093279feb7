"""Certificates that sign themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

_COMMAND = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """Return the files of a certificate for 127.0.0.1: with its key, and alone."""
    both, alone = folder / f"{name}.pem", folder / f"{name}-public.pem"
    subject = ("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [*_COMMAND.split(), *subject, "-keyout", str(both), "-out", str(alone)]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(both.read_text() + alone.read_text())
    return str(both), str(alone)
