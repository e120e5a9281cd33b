"""The agent loop, as two pure functions: `plan` says what a run needs, `step` folds in what happened.

Theory of operation.  A run is the fold of its events.  Effects are *derived* from it, never stored, so a
loaded run knows what it needs, and pausing, resuming, approving and nesting need no machinery of their own.
The loop, in full, is: perform what `plan` says, fold what comes back with `step`, until `plan` says nothing
(the run has ended) or only questions that nobody can answer yet (it is paused).

Rules that the laws rest on.

* A call is known by its place (turn and position), never by the provider's id, which may repeat or be empty.
* An effect once planned stays planned until its own event arrives, whatever else is folded.  Hence: a fatal
  error or a final output ends the run only when every call of its turn is answered; a sticky decision answers
  calls of later turns only; handoff tools come after all other calls of their turn, one at a time, so a handoff
  never overtakes a pending approval; serial tools wait for the earlier ones.
* Pending calls belong to the agent that made them: `Turn.agent` judges them, whoever speaks next.
* A nested run lives on the call that planted it.  Its effects and events carry the places that lead to it.
* What a run can hold has bounds where the work would outgrow it (runs.py): calls of a turn, checks of a call, nesting.
* Foreign code never runs here: predicates, validators, guardrails and clocks are performers' work, and what they
  said is an event.

Where it is: planning.py is `plan`, folding.py `step` and `fold`; calls.py has the rules of one call, growing.py the
builder that lets many events be folded in linear time, unfolding.py takes a run apart into its events again.
"""

from fnagents.folding import fold, step
from fnagents.planning import DEEPEST_RUN, plan
from fnagents.unfolding import events

__all__ = ["DEEPEST_RUN", "events", "fold", "plan", "step"]
