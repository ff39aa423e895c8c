"""Draw docs/images/terminal.svg: commands and what they print on a terminal of 80 columns."""

import io
import os
import pty
import re
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "terminal.svg"
COLUMNS = 80

COMMANDS = [
    "rnsdask random a.zarr --count 200000 --bits 2048 --max-bits 2000 --seed 1",
    'rnsdask eval "a*a + 1" a=a.zarr --extend -o b.zarr',
    "rnsdask max b.zarr",
    "rnsdask head b.zarr -n 3",
    "rnsdask stats b.zarr",
]


def output_of(command: str, folder: str) -> str:
    """Run a command whose standard output is a terminal; progress and warnings are left out."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdout=follower, stderr=subprocess.DEVNULL
    ) as process:
        os.close(follower)
        text = b""
        try:
            while piece := os.read(leader, 2**16):
                text += piece
        except OSError:  # the end of a terminal's output
            pass
        os.close(leader)
    if process.returncode:
        raise SystemExit(f"{command} failed with exit status {process.returncode}")
    return text.decode().replace("\r\n", "\n").rstrip()


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            console.print(Text(f"$ {command}", style="bold green"))
            console.print(Text.from_ansi(output_of(command, folder)))
    svg = console.export_svg(title="rnsdask", theme=MONOKAI, unique_id="terminal")
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # fonts from elsewhere
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(re.sub(r" +$", "", svg, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    main()
