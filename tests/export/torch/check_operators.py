# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# What PyTorch itself says of the operators: torch.library.opcheck, and a step compiled in one graph that gives the same bits. Arguments:
# the library, the device, folders of packages. Prints one line per finding; exit code 77: no such device.
import sys

sys.path[:0] = sys.argv[3:]
import torch

DEVICE = sys.argv[2]
if DEVICE != "cpu" and not torch.cuda.is_available():
    print("no GPU")
    sys.exit(77)
torch.ops.load_library(sys.argv[1])
oscar = torch.ops.oscar
DIM, HEADS, GQA, MAX = 64, 2, 2, 192
# Bytes of metadata in groups of a quarter, and what kernels read.
FORMATS = [[DIM, 2, DIM // 4, DIM, 2, DIM // 4, 2, 16, 16, 48, 24, 8], [DIM, 2, DIM, DIM, 3, DIM, 1, 64, 16, 48, 24, 8]]


def tensor(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=DEVICE)


class Layer:
    def __init__(self, form, requests):
        self.form = form
        pages = -(-MAX // form[7])
        self.pages, self.windows = oscar.make_cache(form, HEADS, requests * pages, requests, DEVICE)
        self.state = torch.zeros(4, requests, dtype=torch.int32, device=DEVICE)
        self.table = torch.randperm(requests * pages).int().view(requests, pages).to(DEVICE)
        self.where = [self.state, self.table, tensor(range(requests)), form, None]
        self.bad = tensor([0])
        rotation = torch.linalg.qr(torch.randn(HEADS, DIM, DIM))[0].bfloat16().contiguous().to(DEVICE)
        self.rotation, self.shared = rotation, rotation[:1].contiguous()
        self.k_side = [rotation, torch.randn(HEADS, DIM, device=DEVICE), [0.96, 0.9], 2, None, None]
        self.v_side = [self.shared, None, [0.92], 1, None, None]

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
        out = torch.zeros(q.shape, device=DEVICE)
        oscar.attend(*self.attend_arguments(out, oscar.rotate_queries(q, self.rotation), begin, most, tails))
        return oscar.rotate_outputs(out, self.shared)


def check(op, arguments):
    result = torch.library.opcheck(op, arguments)
    print(op, result)
    assert all(value == "SUCCESS" for value in result.values())


torch.manual_seed(0)
for form in FORMATS:
    layer = Layer(form, 2)
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

    eager, compiled = Layer(form, 2), Layer(form, 2)
    compiled.rotation, compiled.shared, compiled.table = eager.rotation, eager.shared, eager.table
    compiled.k_side, compiled.v_side, compiled.where[1] = eager.k_side, eager.v_side, eager.table
    step = torch.compile(compiled.step, backend="aot_eager", fullgraph=True)
    for counts in ([90, 40], [1, 1], [1, 1], [3, 3]):
        rows, most = (*eager.rows(counts), tensor(counts)), max(counts)
        assert torch.equal(eager.step(*rows, most), step(*rows, most)), counts
    assert torch.equal(eager.pages, compiled.pages) and torch.equal(eager.windows, compiled.windows)
    assert eager.bad.item() == 0
    print("compiled: the same bits")
