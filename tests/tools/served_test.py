# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: served_test.py CALIBRATE VALIDATE PACKAGE MODEL
# Runs oscar-validate --served against servers at 127.0.0.1: broken servers, and transformers serving the bundled model
# with its own cache and with the cache of the package oscar_kv.
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CALIBRATE, VALIDATE, PACKAGE, MODEL = sys.argv[1:]
sys.path.insert(0, PACKAGE)
os.environ |= {"HF_HUB_OFFLINE": "1"}
try:
    import torch
    import transformers

    import oscar_kv
except ModuleNotFoundError as missing:
    oscar_kv = None
    print(f"{sys.argv[0]}: Skipped\npackage {missing.name} is not installed: tools/setup.sh --tests")

SCRATCH = tempfile.TemporaryDirectory()
ARTIFACT = pathlib.Path(SCRATCH.name) / "artifact"
REQUESTS = []  # (path, Authorization header, body)


def generate(kind, ids, tokens):
    with torch.no_grad():
        Server.model.set_attn_implementation("sdpa" if kind == "exact" else "oscar")
        cache = transformers.DynamicCache() if kind == "exact" else oscar_kv.OscarCache.from_artifact(ARTIFACT, Server.model, prefill="exact")
        step, found = torch.tensor([ids]), []
        for _ in range(tokens):
            row = Server.model(step, past_key_values=cache).logits[0, -1].log_softmax(-1)
            found.append((int(row.argmax()), float(row.max())))
            step = row.argmax()[None, None]
    return found


class Server(http.server.BaseHTTPRequestHandler):
    model = tokenizer = None

    def log_message(self, *args):
        pass

    def answer(self, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        REQUESTS.append((self.path, self.headers.get("Authorization"), body))
        kind, ids = self.path.split("/")[1], body["prompt"]
        fixed, ids_of = {"tokens": ["?", "?", "?"], "token_logprobs": [-1, -1, -1]}, [7, 8, 9]
        usage = {"prompt_tokens": len(ids)}
        if kind == "html":
            return self.answer(200, b"<html>It works!</html>")
        if kind == "refuses":
            return self.answer(404, {"error": {"message": "no such model"}})
        if kind == "locked":
            return self.answer(401, {"error": {"message": "who are you?"}})
        if kind == "slow":
            time.sleep(3)
        if kind == "silent":
            return self.answer(200, {"choices": [{"text": "abc", "logprobs": None}], "usage": usage})
        if kind == "cuts":
            return self.answer(200, {"choices": [{"logprobs": fixed}], "usage": {"prompt_tokens": 5}})
        if kind == "foreign":
            fixed["tokens"], ids_of = ["\u0416\u0416\u0416\u0416\u0416"] * 3, None
        if kind == "positive":
            fixed["token_logprobs"] = [0.5, -1, -1]
        if kind == "outside":
            ids_of = [99999999] * 3
        if kind == "early":
            fixed, ids_of = {"tokens": ["?"], "token_logprobs": [-1]}, [7]
        choice = {"logprobs": fixed, "token_ids": ids_of}
        if kind in ("exact", "artifact"):
            found = generate(kind, ids, body["max_tokens"])
            texts = [Server.tokenizer.decode([i]) for i, _ in found]
            if kind == "exact":  # in the format of llama.cpp
                choice = {"logprobs": {"content": [{"id": i, "token": t, "logprob": p} for t, (i, p) in zip(texts, found)]}}
            else:
                choice = {"logprobs": {"tokens": texts, "token_logprobs": [p for _, p in found]}}
        self.answer(200, {"choices": [choice], "usage": usage})


def run(*arguments, **environment):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, env=os.environ | environment)
    return done.returncode, done.stdout, done.stderr


class QuietServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):  # the client may have disconnected
        pass


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code, out, err = run(CALIBRATE, MODEL, "-o", ARTIFACT, "--device", "cpu", "--tokens", 4000, "--error-rows", 8, "--effort", "quick", "--for", "any",
                             "--bits", 2, "--sink-tokens", 16, "--recent-tokens", 64, "-q")
        assert code == 0, out + err
        cls.server = QuietServer(("127.0.0.1", 0), Server)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.url = f"http://127.0.0.1:{cls.server.server_address[1]}"

    def check(self, kind, *more, **environment):
        return run(VALIDATE, ARTIFACT, "--model", MODEL, "--device", "cpu", "--served", f"{self.url}/{kind}", "--length", 384,
                   *more, **environment)

    def test_broken_servers_get_a_clear_error(self):
        for kind, code, said in (("html", 3, "JSON refused at byte"), ("refuses", 3, "status 404, expected 200"), ("locked", 3, "OPENAI_API_KEY"),
                                 ("silent", 3, "has no logprobs"), ("cuts", 3, "read 5 tokens, but the prompt has 384"),
                                 ("foreign", 3, "tokenizes differently"), ("positive", 3, "logprob 0.5"),
                                 ("outside", 3, "token 99999999"), ("early", 3, "6 tokens generated from 6 prompts"),
                                 ("fixed", 3, "another model")):
            found = self.check(kind)
            self.assertEqual(found[0], code, found)
            self.assertIn(said, found[2])
        found = self.check("slow", "--served-timeout", 1)
        self.assertEqual(found[0], 4, found)
        self.assertIn("--served-timeout 1", found[2])
        down = run(VALIDATE, ARTIFACT, "--model", MODEL, "--served", "http://127.0.0.1:9")
        self.assertEqual(down[0], 4, down)
        self.assertIn("check that the server is running", down[2])
        self.assertNotIn("OPENAI_API_KEY is not sent", down[2])
        for key, said in (("sk-1", self.assertIn), ("", self.assertNotIn)):  # plain HTTP to another machine
            down = run(VALIDATE, ARTIFACT, "--model", MODEL, "--served", "http://127.0.0.2:9", OPENAI_API_KEY=key)
            self.assertEqual(down[0], 4, down)
            said("OPENAI_API_KEY is not sent to http://127.0.0.2:9", down[2])
        for address in ("gpu:8000/v1?x=1", "ftp://gpu", "http://me:secret@gpu"):
            found = run(VALIDATE, ARTIFACT, "--model", MODEL, "--served", address)
            self.assertEqual(found[0], 2, found)

    def test_asks_as_servers_expect(self):
        REQUESTS.clear()
        self.check("early/v1/", "--served-tokens", 3, OPENAI_API_KEY="sk-1")
        self.assertEqual([r[0] for r in REQUESTS], 6 * ["/early/v1/completions"])
        self.assertEqual({r[1] for r in REQUESTS}, {"Bearer sk-1"})
        body = REQUESTS[0][2]
        self.assertEqual((body.get("model"), body["max_tokens"], body["temperature"], len(body["prompt"])), (None, 3, 0, 384))
        prompts = {tuple(r[2]["prompt"]) for r in REQUESTS}
        self.check("early", "--served-model", "named", "--served-tokens", 3)
        self.assertEqual(len(REQUESTS), 12)
        self.assertEqual(REQUESTS[-1][2]["model"], "named")
        self.assertFalse(prompts & {tuple(r[2]["prompt"]) for r in REQUESTS[6:]})  # no prompt is sent twice

    @unittest.skipUnless(oscar_kv, "no transformers")
    def test_says_what_a_server_does(self):
        torch.set_num_threads(1)
        Server.model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
        Server.tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        for kind, code in (("artifact", 0), ("exact", 1)):
            path = pathlib.Path(SCRATCH.name) / f"{kind}.json"
            found = self.check(kind, "--served-tokens", 32, "--sequences", 8, "--cache-dtype", "compute", "-o", path)
            print(*found)
            self.assertEqual(found[0], code, found)
            report = json.loads(path.read_text())
            self.assertEqual(report["verdict"], {"artifact": "artifact", "exact": "bf16"}[kind])
            self.assertGreaterEqual(abs(report["confidence"] - code), 0.95)
            self.assertLess(report["first_token_distance"], 0.02)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    sys.exit(1 if not result.wasSuccessful() else 77 if oscar_kv is None else 0)
