#!/usr/bin/env python3
"""The program of figure 2 of the Pathways paper, as the paper writes it.

    phalanx flow up --hosts 4 --devices 2 &            prints "ready ADDRESS"
    PHX_FLOW=ADDRESS examples/flow/figure2.py          (array([3., 5.]), array([2., 4.]))
"""

import numpy

import phalanx.flow as pw
from phalanx.flow import pmap


def get_devices(n):
    """Allocates `n` virtual devices on an island."""
    device_set = pw.make_virtual_device_set()
    return device_set.add_slice(tpu_devices=n).tpus


a = pmap(lambda x: x * 2.0, devices=get_devices(2))
b = pmap(lambda x: x + 1.0, devices=get_devices(2))
c = pmap(lambda x: x / 2.0, devices=get_devices(2))


@pw.program
def f(v):
    x = a(v)
    y = b(x)
    z = a(c(x))
    return (y, z)


if __name__ == "__main__":
    print(f(numpy.array([1.0, 2.0])))
