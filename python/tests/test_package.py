"""What the package needs, and what it shows."""

import subprocess
import sys
from pathlib import Path

import lanemark

LISTINGS = Path(__file__).resolve().parents[2] / "checks/tests/inventory/listings"

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "pandas", "polars", "pyarrow", "xarray", "matplotlib", "distributed", "dask", "tqdm"):
            raise ImportError(name + " is absent")
sys.meta_path.insert(0, Absent())
import lanemark
record = lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes="64,4K")
record.table.to_parquet(sys.argv[1])
print(record, record._repr_html_(), record.table.to_csv(), lanemark.advise("card-gen5-x16", sizes=64, direction="to_device"))
lanemark.sweep({"schema": 1, "platforms": ["card-gen5-x16"], "question": [{"name": "dma_read_latency", "sizes": "64"}]},
               sys.argv[1] + ".jsonl", executor=lanemark.InThisProcess())
"""


def test_the_package_needs_no_other_one(tmp_path):
    words = [sys.executable, "-c", WITHOUT, str(tmp_path / "table.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_bar_shows_the_share_and_the_step_and_is_removed(capsys):
    record = lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", sizes="64..64K", iterations=200, no_fast_forward=True, progress=True)
    shown = capsys.readouterr().err
    assert record.answers and "%" in shown and "dma_read_bandwidth on card-gen5-x16" in shown
    assert shown.endswith("\r") and shown.rpartition("\r")[0].rpartition("\r")[2].strip() == ""
    lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes=64)
    assert capsys.readouterr().err == "", "no bar without a terminal"


def test_a_listing_is_diagnosed_as_by_the_command():
    path = LISTINGS / "server-with-a-degraded-card.txt"
    diagnosis = lanemark.doctor(path)
    assert "link_width" in {finding["check"] for finding in diagnosis.findings}, diagnosis.findings
    command = subprocess.run([sys.executable, "-m", "lanemark", "doctor", "--from", str(path)], capture_output=True, text=True, timeout=60)
    assert str(diagnosis).strip() == command.stdout.strip()
