"""Options in Python are those of the command."""

import lanemark
import pytest
from lanemark import _lanemark
from lanemark._ask import NOT_HERE, Options, TraceOptions


@pytest.mark.parametrize(("command", "options"), [("bench", Options), ("predict", Options), ("trace", TraceOptions)])
def test_every_option_of_a_command_has_the_same_name_here(command, options):
    of_command = {name for name in _lanemark.option_names(command) if name not in NOT_HERE}
    assert {name.rstrip("_").replace("_", "-") for name in options.__annotations__} == of_command


def test_an_unknown_option_is_a_type_error_with_a_hint():
    with pytest.raises(TypeError, match=r"predict\(\) got an unexpected keyword argument 'size'. Did you mean sizes"):
        lanemark.predict("card-gen5-x16", size=64)


def test_messages_call_options_as_they_are_called_here():
    with pytest.raises(lanemark.UsageError, match="^invalid value 'xx' for 'memory_type <TYPES>'"):
        lanemark.simulate("card-gen5-x16", memory_type="xx")
    with pytest.raises(lanemark.UsageError, match="^budget: formulas take no samples"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", budget=1)
    with pytest.raises(lanemark.UsageError, match="^'dma_reed_latency' is not a question"):
        lanemark.predict("card-gen5-x16", "dma_reed_latency")
    with pytest.raises(lanemark.UsageError, match="^sizes: 1000000000000 B exceed"):
        lanemark.predict("card-gen5-x16", "mmio_write_latency", sizes=10**12)


def test_an_option_that_only_the_command_has_is_named_as_one():
    with pytest.raises(TypeError, match="unexpected keyword argument 'full': --full is an option of the command only"):
        lanemark.simulate("card-gen5-x16", full=True)


def test_what_a_trace_cannot_do_is_refused_and_not_ignored():
    for option in ("output", "link", "budget"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
            lanemark.trace("card-gen5-x16", "mmio_read_latency", **{option: "x"})


def test_the_engine_of_a_real_card_is_named_by_its_device_file(tmp_path):
    with pytest.raises(lanemark.UsageError, match="nothing.toml"):
        lanemark.bench("0000:ff:1f.7", "dma_read_latency", device=tmp_path / "nothing.toml")
    with pytest.raises((lanemark.AbsentError, lanemark.UsageError), match="0000:ff:1f.7"):
        lanemark.bench("0000:ff:1f.7", "dma_read_latency", device="edu")


def test_the_options_of_a_drive_are_checked_as_those_of_the_command():
    with pytest.raises(lanemark.UsageError, match="'CMB' is not a place of the submission queue: use one of host, cmb"):
        lanemark.bench("0000:ff:1f.7", "dma_write_bandwidth", nvme_queues="CMB")
    with pytest.raises(lanemark.UsageError, match="^nvme_data applies to cards only"):
        lanemark.bench("card-gen5-x16", "dma_write_bandwidth", nvme_data="sgl")


def test_questions_and_numbers_of_numpy_are_taken_as_they_are():
    import numpy

    (question,) = [one for one in lanemark.questions() if one.name == "dma_read_bandwidth"]
    record = lanemark.predict("card-gen5-x16", question, sizes=64.0, outstanding=numpy.int64(2), random=numpy.bool_(True))
    assert record.table["size_bytes"] == [64] and record.table["is_random"] == ["true"]


def test_no_target_is_a_usage_error():
    with pytest.raises(lanemark.UsageError, match="^on: there is no target"):
        lanemark.predict([], "dma_read_latency")


def test_lists_ranges_and_numbers_are_sizes():
    def asked(sizes):
        return lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=sizes).table["size_bytes"]

    assert asked([64, "4K"]) == asked((64, 4096)) == asked("64,4096") == [64, 4096]
    assert asked("64..256") == [64, 128, 256] and asked(range(64, 256, 64)) == [64, 128, 192]


def test_an_absent_device_is_an_absent_error():
    # With the driver of a GPU, it is the number that is wrong.
    with pytest.raises((lanemark.AbsentError, lanemark.UsageError)):
        lanemark.bench("opencl:99" if _has_no_opencl() else "cuda:99", "runtime_copy")


def _has_no_opencl():
    try:
        lanemark.bench("opencl:0", "launch_latency", budget=0)
    except lanemark.LanemarkError:
        return True
    return False


def test_a_flag_is_true_or_false_and_another_option_is_not():
    with pytest.raises(TypeError, match=r"predict\(\) got random=1: it takes True or False"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", random=1)
    with pytest.raises(TypeError, match=r"predict\(\) got sizes=True: it takes a value"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=True)
    # As None, False omits an option.
    record = lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=64, random=False, window=False)
    assert record.table["size_bytes"] == [64]
    with pytest.raises(lanemark.UsageError, match="^region: .* is not UTF-8"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", region="a\udcff")


def test_a_set_has_no_order_and_is_no_list_of_sizes():
    with pytest.raises(TypeError, match="has no order: use a list"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", sizes={64, 4096})


def test_a_name_that_is_not_utf_8_is_refused_with_its_argument(tmp_path):
    for call, argument in [
        (lambda name: lanemark.Platform(name), "name"),
        (lambda name: lanemark.predict(name, "dma_read_latency"), "on"),
        (lambda name: lanemark.simulate(name, "dma_read_latency"), "on"),
        (lambda name: lanemark.sweep(name), "space"),
    ]:
        with pytest.raises(lanemark.UsageError, match=f"^{argument}: .*udcff.toml' is not UTF-8: use another name"):
            call("card\udcff.toml")
        with pytest.raises(lanemark.UsageError, match=f"^{argument}: b'card.toml' is not a string"):
            call(type("Path", (), {"__fspath__": lambda self: b"card.toml"})())


def test_a_trace_takes_a_question_of_the_list():
    (question,) = [one for one in lanemark.questions() if one.name == "dma_read_latency"]
    assert len(lanemark.trace("card-gen5-x16", question, sizes=64, iterations=1).table) > 0


def test_an_option_that_leaves_no_case_is_named():
    with pytest.raises(lanemark.AbsentError, match="^window applies to DMA"):
        lanemark.predict("card-gen5-x16", "mmio_read_latency", window="1M")
    with pytest.raises(lanemark.AbsentError, match="^no case of the question matches the given access: remove it"):
        lanemark.predict("card-gen5-x16", "dma_read_latency", access=8)
    with pytest.raises(lanemark.UsageError, match="'channels <COUNT>': use a whole number from 1 to 64"):
        lanemark.predict("card-gen5-x16", "dma_read_bandwidth", channels="many")
