"""The notebook among the examples runs from the first cell to the last."""

import pathlib

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).parents[1] / "examples/first-look.ipynb"


def test_every_cell_runs_and_pictures_are_shown(monkeypatch):
    # Notebooks have a backend of their own.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<svg" in data.get("text/html", "") for data in shown), "a record is shown as a plot"
    assert any("image/png" in data for data in shown), "Matplotlib draws"
    assert not [output for cell in notebook.cells for output in cell.get("outputs", []) if output["output_type"] == "error"]
