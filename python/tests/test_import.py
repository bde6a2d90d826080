"""The output of other tools as records."""

from pathlib import Path

import lanemark
import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "records" / "samples"


def test_the_figures_of_a_tool_become_answers_that_other_functions_read():
    record = lanemark.import_(SAMPLES / "nvbandwidth-one-path.txt", on="xeon-spr+gpu-h100")
    document = record.to_dict()
    assert document["imported"]["tool"] == "nvbandwidth" and record.answers
    assert all(figure["limit_bytes_per_s"] > 0 for figure in document["imported"]["figures"])
    assert lanemark.compare(record, record).to_dict()


def test_a_figure_above_the_limit_of_the_link_is_an_error_that_has_the_record():
    with pytest.raises(lanemark.FailedError, match="above the limit of the link") as failed:
        lanemark.import_(SAMPLES / "nvbandwidth-one-path.txt", on="xeon-spr+fpga-gen3-xdma")
    assert failed.value.record.to_dict()["imported"]["tool"] == "nvbandwidth"


def test_a_file_of_no_tool_is_refused(tmp_path):
    (tmp_path / "out.txt").write_text("hello\n")
    with pytest.raises(lanemark.UsageError, match="out.txt: its words are those of no tool.*; name one with tool: nvbandwidth"):
        lanemark.import_(tmp_path / "out.txt")
    with pytest.raises(lanemark.UsageError, match="^files: there is none"):
        lanemark.import_([])
