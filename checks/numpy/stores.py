"""The formula of 64 B write-combining stores over whole lines, in NumPy, over arrays of three numbers.

Arguments: KEY=NUMBER. Prints a line `sum NUMBER`, the sum of all times in ns, and a line `per_s NUMBER`, predictions per
second of processor time, for each round. The formula is that of `crates/model/src/store.rs`, without bounds and leads.
"""

import sys
import time

import numpy as np

given = dict(argument.split("=") for argument in sys.argv[1:])
number = {key: float(value) for key, value in given.items()}
rows, rounds = int(number["rows"]), int(number["rounds"])
row = np.arange(rows, dtype=np.float64)
wc_buffers = 4 + row % 32
latency = 50 + row % 1000
headers = 8 + row % 100

step, round_trip, store_buffer = number["step"], number["round_trip"], number["store_buffer"]
serialise, device, ingress, dllp = number["serialise"], number["device"], number["ingress"], number["dllp"]
by_data, lines_of_pass, passes = number["by_data"], number["lines"], number["passes"]


def divided(one, other):
    quotient = np.floor(one / other)
    return quotient, one - quotient * other


def stalled(behind):
    return max(max(behind - store_buffer - 1, 0) * step, behind * step)


def rounds_then(count, behind, store):
    waits = round_trip + behind * step + (count - 1) * (round_trip + stalled(behind)) + stalled(store)
    return np.where(count > 0, waits, store * step)


def by_lines(line, together):
    count, rest = divided(line, together)
    return rest * step + rounds_then(count, 0, 0)


def delivered():
    last = lines_of_pass * passes - 1
    together = np.minimum(wc_buffers, lines_of_pass)
    one = serialise + latency + ingress + device
    unloaded = round_trip / 2 + one
    credits = np.maximum(np.minimum(by_data, headers), 1)
    again, rest = divided(last, credits)
    apart = np.where(again > 0, max(serialise, device), serialise)
    leaves = np.maximum(rest * step, by_lines(rest, together))
    by_credits = again * (one + dllp + latency) + np.maximum(rest * apart, leaves)
    near = max(last * step, rounds_then(passes - 1, 0, lines_of_pass - 1))
    far = max(last * serialise, last * device)
    return unloaded + np.maximum(np.maximum(by_lines(last, together), by_credits), max(near, far))


for _ in range(rounds):
    start = time.process_time()
    times = delivered()
    print("per_s", rows / (time.process_time() - start))
print("sum", repr(float(times.sum())))
