"""Advice for a workload."""

import lanemark
import pytest


def test_a_platform_object_gets_the_advice_of_its_name_with_its_own_keys():
    card = lanemark.Platform("card-gen5-x16")
    asked = dict(sizes=[4096], direction="to_device")
    named = lanemark.advise("card-gen5-x16", **asked)
    assert lanemark.advise(card, **asked).choices == named.choices
    slow = lanemark.advise(card.with_(link={"latency_ns": 2000}), **asked)
    assert slow.target.startswith("card-gen5-x16") and slow.choices != named.choices
    assert lanemark.advise(card, with_={"link.latency_ns": 2000}, **asked).choices == slow.choices


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("17M", "sizes: 17MiB is above the maximum of 16MiB"),
        (range(64, 64 * 14, 64), "sizes: 13 sizes are too many: use at most 12"),
        ("many", "sizes: "),
    ],
)
def test_sizes_that_cannot_be_are_a_usage_error(sizes, message):
    with pytest.raises(lanemark.UsageError) as error:
        lanemark.advise("card-gen5-x16", sizes=sizes)
    assert str(error.value).startswith(message)


def test_a_platform_with_unknown_numbers_is_refused_with_their_keys():
    text = 'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[memory]\nread_ns = { unknown = "to be fitted" }\n'
    with pytest.raises(lanemark.PlatformError, match="memory.read_ns"):
        lanemark.advise(lanemark.Platform.from_toml(text))
