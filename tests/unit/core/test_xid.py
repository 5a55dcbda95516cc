from perfgate.core.xid import is_of_program, xid_text


def test_xid_text__names_each_once_in_the_order_they_came() -> None:
    assert xid_text((79, 31, 79)).startswith("Xid 79 (the GPU has fallen off the bus), Xid 31 (")
    assert xid_text(()) == ""


def test_xid_text__leaves_an_unknown_number_bare() -> None:
    assert xid_text((999,)) == "Xid 999"


def test_is_of_program__tells_a_kernels_fault_from_the_gpus() -> None:
    assert is_of_program(31)
    assert not is_of_program(79)
    assert not is_of_program(999)
