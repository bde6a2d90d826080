"""A program whose types mypy checks; it is not run."""

import lanemark


def rates(card: lanemark.Platform) -> list[float]:
    record = lanemark.simulate(card, "dma_read_bandwidth", sizes=[64, "4K"], outstanding=16, with_={"dma": {"tags": 64}})
    values = record.table["delivered_rate_bytes_per_s_median"]
    return [value for value in values if isinstance(value, float)]


def verdict(path: str) -> str | None:
    return lanemark.fit(lanemark.Platform.from_listing(path), "measured.csv").verdict
