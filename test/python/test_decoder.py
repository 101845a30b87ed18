"""Builds examples/decoder as a user does, and compares its greedy tokens with Hugging Face's on small random models.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import fcntl
import json
import shutil
import struct
import subprocess

import pytest
import torch
from conftest import BUILD, ROOT, build_package

transformers = pytest.importorskip("transformers")

PACKAGES = (
    "embedding norm residual gemm rotary attention_varlen attention_cache elementwise experts moe sampling".split()
)
SIZES = dict(
    vocab_size=320,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    initializer_range=0.2,
    bos_token_id=1,
    eos_token_id=2,
)
LLAMA3 = dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
EXPERTS = dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=48, norm_topk_prob=True)
YARN = dict(rope_type="yarn", rope_theta=15e4, factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False)
MODELS = {
    "llama": ("Llama", {}),
    "llama-tied": (
        "Llama",
        dict(tie_word_embeddings=True, rope_parameters={**LLAMA3, "original_max_position_embeddings": 64}),
    ),
    "qwen3": ("Qwen3", dict(head_dim=32)),
    "qwen3-moe": ("Qwen3Moe", dict(head_dim=32, **EXPERTS)),
    "gpt-oss": (
        "GptOss",
        dict(
            head_dim=16,
            intermediate_size=48,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=16,
            rope_parameters={**YARN, "original_max_position_embeddings": 64},
        ),
    ),
}


@pytest.fixture(scope="module")
def program(packages, tmp_path_factory):
    """Returns a function that runs the program with the packages of the tests."""
    folder = tmp_path_factory.mktemp("packages")
    kernels = build_package(
        ROOT / "examples" / "decoder" / "decoder.k",
        BUILD / "test-packages" / "example-decoder.kpkg",
        "--target",
        "native",
    )
    for name, path in {"decoder": kernels, **{name: packages[name] for name in PACKAGES}}.items():
        (folder / f"{name}.kpkg").symlink_to(path)
    # The place stays, so that only changes are compiled again.
    place = BUILD / "test-decoder"
    place.mkdir(exist_ok=True)
    options = [f"-DCMAKE_PREFIX_PATH={place}/prefix", "-DCMAKE_BUILD_TYPE=Debug"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be building it
        for command in (
            ["cmake", "--install", BUILD, "--component", "runtime", "--prefix", place / "prefix"],
            ["cmake", "-S", ROOT / "examples" / "decoder", "-B", place / "program", *options],
            ["cmake", "--build", place / "program", "-j2"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr

    def run(*arguments, code=0, packages=folder):
        command = [place / "program" / "decoder", "--packages", packages, "--device", "cpu", *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


def make_checkpoint(folder, name, **options):
    kind, own = MODELS[name]
    torch.manual_seed(7)
    config = getattr(transformers, f"{kind}Config")(**{**SIZES, **own})
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith(("bias", "sinks")) or "norm" in parameter_name:
                parameter += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder, safe_serialization=True, **options)
    return model


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Returns the folder and the model of a small checkpoint, each of which is made once."""
    made = {}

    def find(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = folder, make_checkpoint(folder, name)
        return made[name]

    return find


def prompts(*lengths):
    return [torch.randint(3, 320, (length,)).tolist() for length in lengths]


def tokens_of(output):
    """Returns the tokens of each request, in the order of their numbers."""
    found = {}
    for line in output.splitlines():
        number, token = line.split("\t")[:2]
        found.setdefault(int(number), []).append(int(token))
    return [found[number] for number in sorted(found)]


def generated(model, prompt, count):
    with torch.no_grad():
        tokens = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False, pad_token_id=0)
    return tokens[0, len(prompt) :].tolist()


def ids(prompt):
    return ["--ids", ",".join(map(str, prompt))]


@pytest.mark.parametrize("name", MODELS)
def test_tokens(program, checkpoint, name):
    """Seven prompts share three rows and few pages, so that requests wait for rows and for pages."""
    folder, model = checkpoint(name)
    given = prompts(1, 5, 17, 40, 64, 65, 100)
    expected = [generated(model, prompt, 20) for prompt in given]
    assert len({token for tokens in expected for token in tokens}) > 20, "the model repeats itself"
    arguments = [part for prompt in given for part in ids(prompt)]
    sizes = ["--batch", 3, "--page", 16, "--pages", 12, "--max-tokens", 20, "--prefill-tokens", 64]
    assert tokens_of(program("--model", folder, *sizes, *arguments)) == expected


def test_tokens_do_not_depend_on_the_batch(program, checkpoint):
    """Requests with draws of their own, alone and together."""
    folder, _ = checkpoint("llama")
    requests = [
        dict(ids=prompt, max_tokens=6 + i, temperature=0.5 * i, top_k=10 * i, top_p=1 - 0.1 * i, seed=i)
        for i, prompt in enumerate(prompts(3, 9, 20, 33))
    ]
    file = folder / "requests.jsonl"

    def run(requests, rows):
        file.write_text("\n".join(json.dumps(request) for request in requests))
        return tokens_of(program("--model", folder, "--requests", file, "--batch", rows, "--ignore-eos"))

    together = run(requests, 4)
    assert [len(tokens) for tokens in together] == [6, 7, 8, 9]
    assert together == [run([request], 1)[0] for request in requests]
    assert run([{**requests[3], "seed": 9}], 1) != [together[3]]


def test_shards(program, tmp_path):
    model = make_checkpoint(tmp_path, "qwen3", max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    prompt = prompts(12)[0]
    assert tokens_of(program("--model", tmp_path, "--max-tokens", 5, *ids(prompt))) == [generated(model, prompt, 5)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dtypes(program, tmp_path, dtype):
    """Weights of 16 bits, as they are and in float32."""
    model = make_checkpoint(tmp_path, "llama").to(dtype)
    model.save_pretrained(tmp_path, safe_serialization=True)
    prompt = prompts(12)[0]
    run = ["--model", tmp_path, "--max-tokens", 6, *ids(prompt)]
    assert tokens_of(program(*run)) == [generated(model.float(), prompt, 6)]
    assert len(tokens_of(program(*run, "--dtype", str(dtype)[6:], "--ignore-eos"))[0]) == 6


def test_text(program, checkpoint, tmp_path):
    if not shutil.which("spm_train"):
        pytest.skip("SentencePiece is not installed")
    (tmp_path / "text").write_text("\n".join(f"word {i} and some more of it" for i in range(200)))
    train = ["spm_train", f"--input={tmp_path}/text", f"--model_prefix={tmp_path}/t", "--vocab_size=60"]
    train += ["--hard_vocab_limit=false"]
    subprocess.run(train, check=True, capture_output=True)
    folder, model = checkpoint("llama")
    run = ["--model", folder, "--tokenizer", tmp_path / "t.model", "--max-tokens", 8]
    lines = [line.split("\t") for line in program(*run, "--prompt", "some word").splitlines()]
    pieces = subprocess.run(
        ["spm_encode", f"--model={tmp_path}/t.model", "--output_format=id"],
        input="some word",
        capture_output=True,
        text=True,
    )
    prompt = [1, *map(int, pieces.stdout.split())]
    assert [int(line[1]) for line in lines] == generated(model, prompt, 8)
    assert all(isinstance(json.loads(line[2]), str) for line in lines if len(line) > 2)


def test_random_weights(program, checkpoint):
    """Random weights need no file but the configuration."""
    folder, _ = checkpoint("gpt-oss")
    run = ["--random-weights", folder / "config.json", "--max-tokens", 4, "--ignore-eos", "--times", *ids([5, 6, 7])]
    assert len(tokens_of(program(*run))[0]) == 4


def edit(folder, change):
    """Writes the header of model.safetensors again."""
    file = folder / "model.safetensors"
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def rewrite(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def cut(folder, size):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])


NORM = "model.norm.weight"
BAD = {
    "no tensor": (lambda f: edit(f, lambda h: h.pop(NORM)), "the checkpoint has no tensor 'model.norm.weight'"),
    "shape": (lambda f: edit(f, lambda h: h[NORM].update(shape=[8, 8])), "has shape [8, 8], expected [64]"),
    "elements": (lambda f: edit(f, lambda h: h[NORM].update(shape=[65])), "has 256 bytes, expected 260"),
    "huge": (lambda f: edit(f, lambda h: h[NORM].update(shape=[2**40, 2**40])), "has the impossible shape"),
    "negative": (lambda f: edit(f, lambda h: h[NORM].update(shape=[-64])), "has the impossible shape [-64]"),
    "offsets": (lambda f: edit(f, lambda h: h[NORM].update(data_offsets=[4, 2**63])), "truncated or damaged"),
    "order": (lambda f: edit(f, lambda h: h[NORM].update(data_offsets=[512, 256])), "truncated or damaged"),
    "dtype": (lambda f: edit(f, lambda h: h[NORM].update(dtype="I64")), "must be F32, F16 or BF16"),
    "entry": (lambda f: edit(f, lambda h: h.update({NORM: 7})), "needs a dtype, a shape and two data_offsets"),
    "truncated": (lambda f: cut(f, -100), "the file is truncated or damaged"),
    "header": (lambda f: cut(f, 40), "is no safetensors file"),
    "empty": (lambda f: cut(f, 0), "is empty"),
    "not JSON": (lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 3) + b"{a}"), "header is no JSON"),
    "no file": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: cannot be opened"),
    "index": (
        lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../b"}}'),
        "expected the name of a file of the folder",
    ),
    "config": (lambda f: (f / "config.json").write_text("{"), "config.json is no JSON"),
    "architecture": (lambda f: rewrite(f, architectures=["Gpt2Model"]), "architecture Gpt2Model is not supported"),
    "layers": (lambda f: rewrite(f, num_hidden_layers="two"), "'num_hidden_layers' is \"two\", expected an integer"),
    "heads": (lambda f: rewrite(f, num_key_value_heads=3), "4 heads of queries cannot share 3 heads of keys"),
    "rotary": (lambda f: rewrite(f, rope_parameters=dict(rope_type="dynamic")), "of type 'dynamic' is not supported"),
    "activation": (lambda f: rewrite(f, hidden_act="gelu"), "must have silu gates"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_checkpoint(program, checkpoint, tmp_path, name):
    folder = shutil.copytree(checkpoint("llama")[0], tmp_path / "bad")
    BAD[name][0](folder)
    message = program("--model", folder, *ids([5]), code=1)
    assert BAD[name][1] in message and len(message.splitlines()) == 1, message


def test_packed_experts(program, checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint("gpt-oss")[0], tmp_path / "packed")
    expert = "model.layers.0.mlp.experts.gate_up_proj"
    edit(folder, lambda header: header.update({expert + "_blocks": header.pop(expert)}))
    assert "experts in MXFP4 are not supported" in program("--model", folder, *ids([5]), code=1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (ids([5] * 60) + ["--context", 64], "has a prompt of 60 tokens and asks for 64 more: the context has 64"),
        (ids([5] * 60) + ["--pages", 1], "needs 2 pages, the cache has 1"),
        (ids([320]), "has the token 320, expected 0 to 319"),
        (["--ids", "1,x"], "'x' is no token id"),
        (["--ids", ""], "request 0 has no prompt"),
        ([], "there is no request"),
        (["--prompt", "text"], "tokenizer.model does not exist. No C++ library reads tokenizer.json"),
        (ids([5]) + ["--max-tokens", 0], "asks for 0 tokens"),
    ],
)
def test_bad_request(program, checkpoint, arguments, message):
    assert message in program("--model", checkpoint("llama")[0], *arguments, code=1)


def test_missing_package(program, checkpoint, tmp_path):
    found = program("--model", checkpoint("llama")[0], *ids([5]), code=1, packages=tmp_path)
    assert "decoder.kpkg is missing" in found
