"""Writes wrong bundles, each with one change of a good one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import base64
import copy
import json
import sys
from pathlib import Path

good = json.loads(Path(sys.argv[1]).read_text())


def write(name, change):
    bundle = copy.deepcopy(good)
    change(bundle)
    Path(name + ".sig").write_text(json.dumps(bundle))


def change_payload(bundle):
    statement = base64.b64decode(bundle["dsseEnvelope"]["payload"]).replace(b"sample", b"simple")
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(statement).decode()


Path("text.sig").write_text("no JSON")
write("type", lambda bundle: bundle.update(mediaType="application/json"))
write("payload", change_payload)
write("base64", lambda bundle: bundle["dsseEnvelope"].update(payload="?"))
write("signatures", lambda bundle: bundle["dsseEnvelope"].update(signatures=[]))
write("none", lambda bundle: bundle.pop("dsseEnvelope"))
write("certificate", lambda bundle: bundle.update(verificationMaterial={"certificate": {"rawBytes": ""}}))
