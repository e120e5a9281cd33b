"""fnagents as a column of the side-by-side comparison of agent libraries.

`compare.py` of that comparison finds this file by its name in the folder that BENCH_ADAPTERS names, and gives
`adapter` and `workload`.  What `prepare_*` does is outside of the clock.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import workload as w
from adapter import Adapter

from fnagents import (
    Agent,
    Emit,
    Message,
    ModelError,
    ModelRequest,
    ModelResponse,
    Outcome,
    Run,
    Success,
    ToolCall,
    ToolOutput,
    Usage,
    dump_run,
    invoke,
    load_run,
    run,
    tool,
)
from fnagents.schemas.strict import strict

_USAGE = Usage(1, w.USAGE["input_tokens"], w.USAGE["output_tokens"])


class FnAgents(Adapter):
    """Ours."""

    name = "fnagents"
    role = "ours"
    import_statement = "import fnagents"

    def make_tool(self, fn: Callable[..., Any]) -> Any:
        return tool(fn)

    def tool_schema(self, tool: Any) -> dict[str, Any]:
        schema: dict[str, Any] = tool.definition["parameters"]
        return schema

    def prepare_invoke(self, fn: Callable[..., Any]) -> Callable[[str], Awaitable[str]]:
        made = tool(fn)

        async def call(arguments: str) -> str:
            return (await invoke(made, arguments)).unwrap().text

        return call

    def prepare_run(self, spec: w.RunSpec) -> Callable[[], Awaitable[Run]]:
        agent = Agent("looker", w.INSTRUCTIONS, tools=[tool(spec.tool_fn)])
        replies = [
            Success(
                ModelResponse(
                    tuple(
                        ToolCall(w.call_id(turn, k), spec.tool_fn.__name__, w.call_args(turn, k))
                        for k in range(spec.calls)
                    ),
                    _USAGE,
                )
            )
            for turn in range(spec.turns)
        ]
        replies.append(Success(ModelResponse((Message("assistant", w.FINAL),), _USAGE)))

        async def model(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
            await w.model_pause(spec)
            return replies[request.turn]

        async def once() -> Run:
            return await run(agent, w.PROMPT, client=model, max_turns=None)

        return once

    def run_outputs(self, result: Run) -> tuple[list[str], str]:
        assert isinstance(result.outcome, Success)
        return [item.text for item in result.items if isinstance(item, ToolOutput)], result.outcome.unwrap()

    async def make_state(self, spec: w.RunSpec) -> Run:
        return await self.prepare_run(spec)()

    def dump(self, state: Run) -> str:
        return dump_run(state)

    def load(self, text: str | bytes) -> Run:
        return load_run(text).unwrap()

    def strict(self, schema: dict[str, Any]) -> dict[str, Any]:
        return strict(schema).unwrap()


ADAPTERS = [FnAgents()]
