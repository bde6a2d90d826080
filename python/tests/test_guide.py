"""The examples of the guide are run."""

import doctest
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide/python.md"


def test_every_example_of_the_guide_prints_what_it_says():
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    # One session, in the order of the page.
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", str(GUIDE), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = doctest.DocTestRunner(optionflags=flags).run(test, out=(said := []).append)
    assert results.attempted > 20 and results.failed == 0, "".join(said)


def test_the_program_of_the_readme_runs(capsys):
    (program,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    names = {}
    exec(program, names)
    assert dict(names["rates"].sizes) == {"dma.tags": 3, "size_bytes": 11}
    assert "DMA read bandwidth" in capsys.readouterr().out
