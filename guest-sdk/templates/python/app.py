"""`acme.steady`: the same call gives the same text twice."""

import json

from componentize_py_types import Ok
from wit_world import exports
from wit_world.imports import report
from wit_world.imports.types import (
    Access,
    Allowance,
    Case,
    Check,
    Finding,
    Level,
    Manifest,
    Outcome,
    Reason,
    Verdict,
)

CHECK = "acme.steady"


def submit(verdict, reason, evidence):
    report.submit(Finding(CHECK, None, None, verdict, None, reason, None, None, evidence))


class Probe(exports.Probe):
    def describe(self) -> Manifest:
        schema = {
            "type": "object",
            "properties": {"tool": {"type": "string", "format": "tool"}, "arguments": {"type": "object"}},
            "required": ["tool"],
            "additionalProperties": False,
        }
        return Manifest(
            kind="acme.steady",
            version="0.1.0",
            title="Equal calls give equal texts",
            summary="Calls a tool twice with the same arguments and compares the texts of the results.",
            config_schema=json.dumps(schema),
            checks=[Check(CHECK, Level.SHOULD, "Equal calls give equal texts", None, None)],
            reasons=[
                Reason("unexpected-outcome", "The call did not succeed; call the tool by hand and see why.", [CHECK]),
                Reason(
                    "acme.unsteady",
                    "Two equal calls gave different texts; remove times, random numbers and unsorted lists from the "
                    "result.",
                    [CHECK],
                ),
            ],
            metrics=[],
            needs=[],
            access=Access.READ_ONLY,
            asks=Allowance(2, 0, 2000),
        )

    def run(self, target, case: Case) -> Outcome:
        config = json.loads(case.config)
        params = json.dumps({"name": config["tool"], "arguments": config.get("arguments") or {}})
        seen, evidence = [], []
        with target.primary() as session:
            for attempt in (1, 2):
                # A fault is no verdict: uncaught, it ends the run with itself.
                answer = session.request("tools/call", params, None)
                evidence.append(answer.exchange)
                result = json.loads(answer.reply.value) if isinstance(answer.reply, Ok) else None
                if not isinstance(result, dict) or result.get("isError", False) is not False:
                    submit(Verdict.FAIL, "unexpected-outcome", evidence)
                    return Outcome(attempt, attempt)
                content = result.get("content")
                blocks = content if isinstance(content, list) else []
                seen.append([block.get("text") for block in blocks if block.get("type") == "text"])
        if seen[0] == seen[1]:
            submit(Verdict.PASS, None, evidence)
            return Outcome(2, None)
        submit(Verdict.FAIL, "acme.unsteady", evidence)
        return Outcome(2, 2)
