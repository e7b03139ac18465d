"""A compute-bound pipeline of flow over two islands, beside the same pipeline in one island of the same size.

Two hosts of two devices, a stage on each device; micro-batches go through the stages. In the second runtime each host
is an island, so that what goes from the second stage to the third leaves its island. Both runtimes stand at the same
time and run one program each in turn: the share is the median of the pairs of neighbours.

As a program, `islands.py ADDRESS...` is the client: a line with the seconds of a step for each line of its input.
"""
import os
import subprocess
import sys
import time

STAGES, MICRO, WIDTH, PRODUCTS, STEPS, TURNS = 4, 8, 256, 8, 10, 9
PYTHON = "/usr/bin/python3"  # Debian's, which has NumPy


def pipeline(flow, numpy, address):
    """A program of one step on a runtime, and its arguments."""
    connection = flow.Flow(address, "islands")
    names = [island.name for island in connection.islands()]
    meshes = [connection.mesh(1, ("x",), names[at * len(names) // STAGES]) for at in range(STAGES)]

    def stage(weights, x):
        for _ in range(PRODUCTS):
            x = flow.tanh(x @ weights)
        return x

    stages = [flow.jit(stage, device=mesh.devices[0]) for mesh in meshes]
    draw = numpy.random.default_rng(1)
    weights = [flow.put((draw.standard_normal((WIDTH, WIDTH)) / WIDTH ** 0.5).astype(numpy.float32), mesh)
               for mesh in meshes]
    batches = [flow.put(draw.standard_normal((WIDTH, WIDTH)).astype(numpy.float32), meshes[0]) for _ in range(MICRO)]

    @flow.program
    def step(weights, batches):
        found = []
        for x in batches:
            for run, each in zip(stages, weights):
                x = run(each, x)
            found.append(x)
        return found

    return lambda: [value.wait() for value in step(weights, batches)]


def main(addresses):
    import numpy
    import phalanx.flow as flow
    steps = [pipeline(flow, numpy, address) for address in addresses]
    for step in steps:
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        step, begin = steps[int(line)], time.monotonic()
        for _ in range(STEPS):
            step()
        print((time.monotonic() - begin) / STEPS, flush=True)


# ---- the bench ----


class Runtime:
    def __init__(self, scratch, islands):
        from cluster import PHALANX, BenchError
        self.process = subprocess.Popen(
            [PHALANX, "flow", "up", "--hosts", "2", "--devices", "2", "--islands", str(islands),
             "--dir", scratch.join(f"islands-{islands}")], stdout=subprocess.PIPE, text=True)
        self.address = None
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.address = line.split()[1]
                return
        raise BenchError("phalanx flow up has ended")

    def end(self):
        self.process.terminate()
        self.process.wait()


def client(runtimes):
    from cluster import BUILD, ROOT
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "PHX_FLOW_LIB": os.path.join(BUILD, "libphalanx_flow.so")}
    return subprocess.Popen([PYTHON, os.path.abspath(__file__), *(runtime.address for runtime in runtimes)], env=env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(report):
    from cluster import BenchError, Scratch
    from report import figure, median
    if subprocess.run([PYTHON, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode:
        report.note("islands: python3-numpy is not installed: skipped")
        return
    with Scratch() as scratch:
        runtimes = [Runtime(scratch, islands) for islands in (1, 2)]
        try:
            with client(runtimes) as process:
                def seconds(which):
                    process.stdin.write(f"{which}\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                    if not line:
                        raise BenchError("the client has ended")
                    return float(line)

                process.stdout.readline()
                pairs = [(seconds(0), seconds(1)) for _ in range(TURNS)]
                process.stdin.close()
        finally:
            for runtime in runtimes:
                runtime.end()
    one, two = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
    flops = 2 * WIDTH**3 * PRODUCTS * STAGES * MICRO
    report.row(figure("islands", f"a step of {STAGES} stages, one island", 1e3 * one, "ms"))
    report.row(figure("islands", f"a step of {STAGES} stages, two islands", 1e3 * two, "ms", limit=1e3 * one))
    report.row(figure("islands", "products of matrices, two islands", flops / two / 1e9, "GFLOP/s"))
    report.row(figure("islands", "two islands / one", 100 * median([pair[0] / pair[1] for pair in pairs]), "%",
                      limit=100))


if __name__ == "__main__":
    main(sys.argv[1:])
