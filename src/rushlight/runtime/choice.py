"""Chooses the form of a fat program: by the backends that are here, and by the known answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from rushlight import _core
from rushlight.errors import Code, Error, LoadError
from rushlight.runtime.backends import absent_backends
from rushlight.runtime.contract import Contract, check_form
from rushlight.runtime.forms import (
    PORTABLE,
    FormChoice,
    Index,
    Plan,
    Remembered,
    answer_inputs,
    wrong_answer,
)
from rushlight.runtime.module import Module


def load_chosen(
    core: _core.Program,
    contracts: Mapping[str, Contract],
    index: Index,
    methods: Sequence[str],
    form: str | None,
    where: str,
    *,
    known_answers: bool = True,
) -> Module:
    """Load the first form that can run here and computes its known answer.

    Args:
        core: the opened program.
        contracts: the contract of each method.
        index: the program's forms.
        methods: the names of the methods to load.
        form: the only form to try, or None for the first that works.
        where: the program, for messages.
        known_answers: False skips the check of the known answer.

    Raises:
        LoadError: if there is no such form, or no form can run here.
    """
    if form is not None and form not in index.order:
        raise LoadError(
            f"the program has no form {form!r}; it has {', '.join(index.order)}",
            code=Code.NOT_FOUND,
            where=where,
        )
    notes: list[FormChoice] = []
    for name in index.order if form is None else (form,):
        plans = {m: index.plan(m, name) or index.plan(m, PORTABLE) or _same(m) for m in methods}
        absent = absent_backends(b for plan in plans.values() for b in plan.backends)
        if absent and name != PORTABLE:
            notes.append(FormChoice(name, False, f"backend {', '.join(absent)} is not here"))
            continue
        try:
            for method, plan in plans.items():
                check_form(contracts[method], plan.plan, core.meta(plan.plan))
            module = Module(core, contracts, [(m, p.plan) for m, p in plans.items()], where)
            why = _check(module, index, methods, name) if known_answers else ""
        except Error as error:
            if name == PORTABLE:
                raise
            module, why = None, str(error)
        if module is not None and not why:
            notes.append(FormChoice(name, True, "the first that runs here"))
            rest = index.order[index.order.index(name) + 1 :] if form is None else ()
            module.forms = (*notes, *(FormChoice(n, False, "not needed") for n in rest))
            return module
        if form is None:
            text = f"{where}: form {name!r} is left out: {why}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        notes.append(FormChoice(name, False, why))
        spoiled, core = core, core.clone()
        spoiled.close()
    raise _none_runs(notes, form, where)


def _none_runs(notes: Sequence[FormChoice], form: str | None, where: str) -> LoadError:
    """The error if no form can run; absent backends can be installed, faulty ones updated."""
    reasons = "; ".join(f"{n.form}: {n.why}" for n in notes)
    absent = all(n.why.startswith("backend ") for n in notes)
    what = "no form of the program can run here" if form is None else "this form cannot run here"
    other = "load another form with backend=" if form is None else "leave backend= out"
    advice = "Install what is missing, or" if absent else "Update the backend, or"
    return LoadError(
        f"{what}: {reasons}. {advice} {other}",
        code=Code.NOT_FOUND if absent else Code.INTERNAL,
        where=where,
    )


def _same(method: str) -> Plan:
    """The plan of a method that is not in the index, which is a constant method."""
    return Plan(PORTABLE, method, ())


def _check(module: Module, index: Index, methods: Sequence[str], form: str) -> str:
    """Why the form's answers are wrong; "" if they are right, or were before on this machine."""
    plans = (index.plan(method, form) for method in methods)
    known = Remembered(index, [b for plan in plans if plan is not None for b in plan.backends])
    if form == PORTABLE or form in known:
        return ""
    tried = module.clone() if len(module.state) else module  # the check must not change state
    for method in methods:
        answer = index.answers.get(method)
        if answer is None or index.plan(method, form) is None:
            continue
        results = tried[method].call_values(list(answer_inputs(answer["inputs"])))
        wrong = wrong_answer(answer, results)
        if wrong is not None:
            return f"{method} answers wrong: {wrong}"
    known.add(form)
    return ""
