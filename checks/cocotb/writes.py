"""64 B writes to a card on one Gen3 x8 link, in cocotbext-pcie: prints how many a second, once for each round."""

import sys
import time
from pathlib import Path

import cocotb
from cocotb_tools.runner import get_runner
from cocotbext.pcie.core import Device, MemoryEndpoint, RootComplex

WRITES = 2000
ROUNDS = 5
BYTES = 64


def card():
    """1 MiB of memory behind BAR 0, and the port that it hangs on."""
    endpoint = MemoryEndpoint()
    endpoint.add_mem_region(1 << 20)
    device = Device(endpoint)
    device.upstream_port.max_link_speed = 3
    device.upstream_port.max_link_width = 8
    return endpoint, device


@cocotb.test()
async def writes(_top):
    root_complex = RootComplex()
    endpoint, device = card()
    root_complex.make_port().connect(device)
    await root_complex.enumerate()
    device = root_complex.find_device(endpoint.pcie_id)
    await device.enable_device()
    window = device.bar_window[0]
    for turn in range(ROUNDS):
        start = time.perf_counter()
        for number in range(WRITES):
            await window.write(number * BYTES % (1 << 20), bytes([number % 256]) * BYTES)
        # A read pushes the writes before it: its answer says that all have come.
        last = await window.read((WRITES - 1) * BYTES % (1 << 20), 1)
        seconds = time.perf_counter() - start
        assert last == bytes([(WRITES - 1) % 256]), f"round {turn}: the last write did not arrive"
        print(f"writes_per_s {WRITES / seconds:.1f}", flush=True)


def main():
    here, build = Path(__file__).resolve().parent, Path(sys.argv[1]).resolve()
    runner = get_runner("verilator")
    runner.build(sources=[here / "top.v"], hdl_toplevel="top", build_dir=build, log_file=build / "build.log")
    runner.test(hdl_toplevel="top", test_module="writes", test_dir=here, build_dir=build, results_xml=str(build / "results.xml"))


if __name__ == "__main__":
    main()
