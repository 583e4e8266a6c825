"""NUMA nodes of made-up machines: divided processors, fast and slow memory without cores."""

import pytest

from ropewalk import machine, numa
from ropewalk.doctor import command as report
from test_doctor import GIB, MIB, node_facts, write

NODE = "sys/devices/system/node/node{}"


def make_node(root, number, cpus, package=0, distances="10 21", gib=64, **others):
    """Node `number` below `root`; others: bandwidth, latency, cache (bytes)."""
    folder = NODE.format(number)
    files = {
        f"{folder}/cpulist": f"{cpus}\n",
        f"{folder}/distance": f"{distances}\n",
        f"{folder}/meminfo": f"Node {number} MemTotal:  {gib << 20} kB\n"
        f"Node {number} MemFree:  {gib << 19} kB\n",
    }
    for cpu in machine.cpu_list(cpus):
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"] = f"{package}\n"
    for name, file in (("bandwidth", "read_bandwidth"), ("latency", "read_latency")):
        if name in others:
            files[f"{folder}/access0/initiators/{file}"] = f"{others[name]}\n"
    if "cache" in others:
        files[f"{folder}/memory_side_cache/index1/size"] = f"{others['cache']}\n"
    return write(root, files)


def test_a_plain_machine(tmp_path):
    make_node(tmp_path, 0, "0-7", distances="10")
    (one,) = numa.nodes(tmp_path)
    assert (one["cpus"], one["package"], one["distances"]) == ("0-7", 0, [10])
    assert (one["memory_bytes"], one["free_bytes"]) == (64 * GIB, 32 * GIB)
    assert one["read_mb_per_s"] is None
    assert numa.nodes_per_package([one]) == 1
    assert numa.kind(one, [one]) is None


def test_nodes_are_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2, 0):
        make_node(tmp_path, number, f"{number}")
    assert [one["node"] for one in numa.nodes(tmp_path)] == [0, 2, 10]


@pytest.mark.parametrize("divided", [1, 2, 4])
def test_divided_processors(tmp_path, divided):
    for number in range(2 * divided):
        make_node(tmp_path, number, f"{2 * number}-{2 * number + 1}", package=number // divided)
    assert numa.nodes_per_package(numa.nodes(tmp_path)) == divided


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        ({"bandwidth": 400000, "latency": 130}, "of higher bandwidth (HBM)"),
        ({"bandwidth": 20000, "latency": 250}, "slower (CXL or persistent)"),
        ({"latency": 250}, "slower (CXL or persistent)"),
        ({}, "memory only"),
    ],
)
def test_memory_without_cores_is_judged_by_its_speed(tmp_path, speeds, words):
    make_node(tmp_path, 0, "0-7", bandwidth=100000, latency=100)
    make_node(tmp_path, 1, "", distances="21 10", gib=16, **speeds)
    found = numa.nodes(tmp_path)
    assert numa.kind(found[1], found).endswith(words)
    assert numa.kind(found[0], found) is None


@pytest.mark.parametrize(("tier", "word"), [(3, "faster"), (22, "slower"), (4, "memory only")])
def test_tiers_of_the_kernel_tell_where_the_firmware_does_not(tmp_path, tier, word):
    make_node(tmp_path, 0, "0-7")
    make_node(tmp_path, 1, "")
    top = "sys/devices/virtual/memory_tiering"
    write(tmp_path, {f"{top}/memory_tier4/nodelist": "0\n"})
    nodes = "0-1\n" if tier == 4 else "1\n"
    write(tmp_path, {f"{top}/memory_tier{tier}/nodelist": nodes, f"{top}/uevent": ""})
    found = numa.nodes(tmp_path)
    assert [one["tier"] for one in found] == [4, tier]
    assert word in numa.kind(found[1], found)


def test_the_doctor_tells_all_of_it(tmp_path):
    make_node(tmp_path, 0, "0-3", bandwidth=100000, latency=100, cache=512 * MIB)
    make_node(tmp_path, 1, "4-7", bandwidth=100000, latency=100)
    make_node(tmp_path, 2, "", distances="21 21 10", bandwidth=400000, latency=130)
    lines = dict(report._numa(numa.nodes(tmp_path)))
    assert lines["NUMA mode"].startswith("2 nodes in a processor")
    assert "cpus 0-3, 64 GiB, 32 GiB free, distances 10 21" in lines["NUMA node 0"]
    assert "behind a memory-side cache of 512 MiB" in lines["NUMA node 0"]
    assert "memory only, of higher bandwidth (HBM)" in lines["NUMA node 2"]
    assert "reads 400 GB/s by its firmware, latency 130 ns" in lines["NUMA node 2"]


def test_one_node_has_no_distances_to_tell():
    assert "distances" not in dict(report._numa([node_facts()]))["NUMA node 0"]


def test_this_machine():
    for one in numa.nodes():
        assert one["memory_bytes"] > 0 or not one["cpus"]
