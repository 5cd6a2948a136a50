# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the operators with PyTorch's own tools: torch.library.opcheck, and a step compiled in one graph, which must give the same bits.
# Arguments: the library, the device, folders of packages. Exit code 77: no such device or packages.
import sys

sys.path[:0] = sys.argv[3:]
try:
    import sympy  # needed by torch.compile
    import torch
except ImportError as error:
    print(error)
    sys.exit(77)

DEVICE = sys.argv[2]
if DEVICE != "cpu" and not torch.cuda.is_available():
    print("no GPU")
    sys.exit(77)
torch.ops.load_library(sys.argv[1])
oscar = torch.ops.oscar
DIM, HEADS, GQA, MAX = 64, 2, 2, 192
# Byte scales for groups of a quarter head, and bf16 scales for a head. FORMATS adds whether scales are fitted to the codes.
BYTES, BF16 = [DIM, 2, DIM // 4, DIM, 2, DIM // 4, 2, 16, 16, 48, 24, 8], [DIM, 2, DIM, DIM, 3, DIM, 1, 64, 16, 48, 24, 8]
FORMATS = [(BYTES, True), (BF16, True), (BF16, False)]


def tensor(values, device=DEVICE):
    return torch.tensor(values, dtype=torch.int32, device=device)


class Layer:
    def __init__(self, form, fitted, requests, device=DEVICE):
        torch.manual_seed(1)  # the same for all layers of a format
        self.form = form
        pages = -(-MAX // form[7])
        self.pages, self.windows = oscar.make_cache(form, HEADS, requests * pages, requests, device)
        self.state = torch.zeros(4, requests, dtype=torch.int32, device=device)
        table = torch.randperm(requests * pages).int().view(requests, pages).to(device)
        self.where = [self.state, table, tensor(list(range(requests)), device), form, None]
        self.bad = tensor([0], device)
        self.rotation = torch.linalg.qr(torch.randn(HEADS, DIM, DIM))[0].bfloat16().contiguous().to(device)
        self.shared = self.rotation[:1].contiguous()
        self.k_side = [self.rotation, torch.randn(HEADS, DIM).to(device), [0.96, 0.9] if fitted else [0.96], 2 if fitted else 0, None, None]
        self.v_side = [self.shared, None, [0.92], 1 if fitted else 0, None, None]

    def rows(self, counts):
        n = sum(counts)
        make = lambda heads: torch.randn(n, heads, DIM, device=DEVICE).bfloat16()
        return make(HEADS), make(HEADS), make(HEADS * GQA), tensor([0, *torch.tensor(counts).cumsum(0).tolist()])

    def write_arguments(self, k, v, begin, most):
        return (self.pages, self.windows, self.bad, *self.where, k, v, begin, most, most if most > 1 else 0, *self.k_side, *self.v_side)

    def attend_arguments(self, out, q, begin, most, tails):
        return (out, q, self.pages, self.windows, *self.where, begin, most, MAX, GQA, 0.125, 0.0, 0, None, False, *tails)

    def step(self, k, v, q, begin, counts, most):
        oscar.advance(self.state, counts, self.form)
        tails = oscar.write(*self.write_arguments(k, v, begin, most))
        out = torch.zeros(q.shape, device=q.device)
        oscar.attend(*self.attend_arguments(out, oscar.rotate_queries(q, self.rotation), begin, most, tails))
        return oscar.rotate_outputs(out, self.shared)


def check(op, arguments):
    result = torch.library.opcheck(op, arguments)
    print(op, result)
    assert all(value == "SUCCESS" for value in result.values())


def steps(layers, compare):
    """The same calls for two layers, by functions of their own; `compare` looks at what they give."""
    layer = layers[0][0]
    for counts in ([90, 40], [1, 1], [1, 1], [3, 3], *[[1, 1]] * 9):
        rows = (*layer.rows(counts), tensor(counts))
        compare(*[step(*[row.to(of.pages.device) for row in rows], max(counts)) for of, step in layers])


def same(a, b):
    assert torch.equal(a, b)


def close(a, b):  # another order of summation moves some values by one step of bf16, and some to another code
    error = (a.float().cpu() - b.float().cpu()).abs()
    assert error.mean() < 2e-3 and error.max() < 0.2, (error.mean(), error.max())


def graphed(layer):
    """Decode steps by a graph that is captured once; prompts as they are."""
    held = []

    def step(*arguments):
        *rows, most = arguments
        if most > 1:
            return layer.step(*rows, most)
        if not held:
            static, state = [row.clone() for row in rows], layer.state.clone()
            pages, windows = layer.pages.clone(), layer.windows.clone()
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                layer.step(*static, 1)
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = layer.step(*static, 1)
            for to, value in ((layer.state, state), (layer.pages, pages), (layer.windows, windows)):
                to.copy_(value)
            held.append((static, graph, out))
        static, graph, out = held[0]
        for to, row in zip(static, rows):
            to.copy_(row)
        graph.replay()
        return out

    return step


for form, fitted in FORMATS:
    layer = Layer(form, fitted, 2)
    for counts in ([100, 70], [1, 1]):
        k, v, q, begin = layer.rows(counts)
        check(oscar.advance, (layer.state.clone(), tensor(counts), form))
        oscar.advance(layer.state, tensor(counts), form)
        write = layer.write_arguments(k, v, begin, max(counts))
        check(oscar.write, write)
        tails = oscar.write(*write)
        out = torch.zeros(q.shape, device=DEVICE)
        check(oscar.rotate_queries, (q, layer.rotation))
        check(oscar.attend, layer.attend_arguments(out, oscar.rotate_queries(q, layer.rotation), begin, max(counts), tails))
        check(oscar.rotate_outputs, (out, layer.shared))
        check(oscar.read, (layer.pages, layer.windows, *layer.where, HEADS, MAX))

    eager, compiled = Layer(form, fitted, 2), Layer(form, fitted, 2)
    steps([(eager, eager.step), (compiled, torch.compile(compiled.step, backend="aot_eager", fullgraph=True))], same)
    same(eager.pages, compiled.pages)
    same(eager.windows, compiled.windows)
    assert eager.bad.item() == 0
    print("compiled: the same bits")
    if DEVICE == "cpu":
        continue
    device, host = Layer(form, fitted, 2), Layer(form, fitted, 2, "cpu")
    steps([(device, device.step), (host, host.step)], close)
    for of_device, of_host in zip(*[oscar.read(of.pages, of.windows, *of.where, HEADS, MAX) for of in (device, host)]):
        close(of_device, of_host)
    print("as on the host")
    eager, replayed = Layer(form, fitted, 2), Layer(form, fitted, 2)
    steps([(eager, eager.step), (replayed, graphed(replayed))], same)
    same(eager.pages, replayed.pages)
    print("in a graph: the same bits")
