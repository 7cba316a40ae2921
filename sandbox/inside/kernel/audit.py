"""A look at a cell's code before it runs: risky calls, by kind and line.

This is a hint for the model, the person and the log, and never a wall: Python can say anything in a way that no reader of it
sees, and the box holds whatever runs (docs/sandbox.md). So it has to be cheap and quiet rather than complete. It follows names
(imports under another name, assignments, `getattr` and `__import__` with constants, what earlier cells bound), raises nothing,
and gives up on what is too long or too deep, which it says.
"""

import ast
import builtins
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType

from . import audit_rules as rules

__builtins__ = dict(vars(builtins))

CODE_MAX = 128 << 10  # characters; more is data, not a program
NODES_MAX = 40_000
FOUND_MAX = 20
WHAT_MAX = 80
NESTED_MAX = 3  # eval("exec('...')")
DEPTH_MAX = 30  # of an expression that names something
PATHS_MAX = 4  # what one name may stand for
_AST_ONLY = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_WORD = re.compile(r"[^\W\d]\w*")
_RM_TREE = re.compile(r"\brm\s+(?:-\S+\s+)*-\w*[rR]")
_compile, _quiet, _simplefilter = compile, warnings.catch_warnings, warnings.simplefilter


@dataclass(frozen=True, order=True)
class Finding:
    line: int
    kind: str
    what: str

    def claim(self) -> dict:
        return {"kind": self.kind, "line": self.line, "what": self.what}


def check(code: str, namespace: dict, transform: Callable[[str], str]) -> list[Finding]:
    """What is risky in it, by line. `transform` makes Python of IPython's lines; it is called only when there are any."""
    try:
        if not _worth_it(code, namespace):
            return []
        return _Reader(namespace).read(code, transform)
    except Exception as error:  # nested too deep, say, or a namespace that was played with
        return [Finding(1, rules.UNCHECKED, type(error).__name__)]


def note(found: list[Finding]) -> str:
    """For the model, one line."""
    parts = [f"line {f.line} {rules.WORDS[f.kind]} ({f.what})" for f in found[:5]]
    more = f"; {len(found) - 5} more" if len(found) > 5 else ""
    return "code check: " + "; ".join(parts) + more


def refusal(found: list[Finding]) -> str:
    return (
        f"the code was not run, because this service refuses risky calls (box.audit = refuse): {note(found).partition(': ')[2]}. "
        "Do it with plain Python and the libraries here, without these calls."
    )


def _worth_it(code: str, namespace: dict) -> bool:
    if len(code) > CODE_MAX or any(mark in code for mark in rules.MARKS):
        return True
    words = set(_WORD.findall(code))
    return not words.isdisjoint(rules.TELLTALES) or any(_is_risky(_path_of(namespace[w])) for w in words if w in namespace)


# Names


def _canonical(path: str) -> str:
    head, dot, rest = path.partition(".")
    return rules.SAME.get(head, head) + dot + rest


def _path_of(value: object) -> str | None:
    """What an earlier cell's name stands for: a module, a function or a class of one."""
    kind = type(value)
    if kind.__name__ in rules.OBJECTS:
        return rules.OBJECTS[kind.__name__]
    if kind is ModuleType:
        name = value.__dict__.get("__name__")
        return _canonical(name) if type(name) is str else None
    if kind in (FunctionType, BuiltinFunctionType, type):
        module, name = value.__module__, value.__qualname__
        return _canonical(f"{module}.{name}") if type(module) is str and type(name) is str else None
    return None


def _kind_of(path: str) -> str | None:
    """Of a call of that path."""
    if path in rules.CALLS:
        return rules.CALLS[path]
    while path and path not in rules.SAFE:
        if path in rules.TREES:
            return rules.TREES[path]
        path = path.rpartition(".")[0]
    return None


def _is_risky(path: str | None) -> bool:
    return path is not None and (_kind_of(path) is not None or path in ("os", "subprocess", "shutil", "asyncio", "signal", "builtins", "importlib"))


def _text(node: ast.AST, depth: int = 0) -> str | None:
    """A string that is written there, also in pieces."""
    if type(node) is ast.Constant:
        return node.value if type(node.value) is str else None
    if type(node) is ast.JoinedStr and depth < DEPTH_MAX:
        parts = [_text(v, depth + 1) for v in node.values]
    elif type(node) is ast.BinOp and type(node.op) is ast.Add and depth < DEPTH_MAX:
        parts = [_text(node.left, depth + 1), _text(node.right, depth + 1)]
    else:
        return None
    return None if None in parts else "".join(parts)


def _beginning(node: ast.AST) -> str | None:
    """Of a string that is put together: what it begins with."""
    for _ in range(DEPTH_MAX):
        if type(node) is ast.JoinedStr and node.values:
            node = node.values[0]
        elif type(node) is ast.BinOp and type(node.op) is ast.Add:
            node = node.left
        else:
            return _text(node)
    return None


class _Reader:
    def __init__(self, namespace: dict):
        self._namespace = namespace
        self._names: dict[str, list[str]] = {}
        self._found: set[Finding] = set()
        self._nested = 0
        self._line = 0  # of the outermost code, while nested code is read

    def read(self, code: str, transform: Callable[[str], str]) -> list[Finding]:
        if len(code) > CODE_MAX:
            return [Finding(1, rules.UNCHECKED, f"{len(code)} characters")]
        tree = _parse(code) or _parse(transform(code))
        if tree is None:
            return []  # it will not run either
        self._tree(tree)
        return sorted(self._found)[:FOUND_MAX]

    def _tree(self, tree: ast.AST) -> None:
        nodes = list(_walk(tree))
        if len(nodes) > NODES_MAX:
            self._found.add(Finding(self._line or 1, rules.UNCHECKED, f"more than {NODES_MAX} parts"))
        for node in nodes:
            self._imports(node)
        for node in nodes:
            self._assigns(node)
        for node in nodes:
            if type(node) is ast.Call:
                self._call(node)
            elif type(node) in (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    self._use(decorator)

    # What names stand for, wherever in the cell they are bound

    def _imports(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is ast.Import:
            for alias in node.names:
                self._bind(alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else alias.name.partition(".")[0])
        elif kind is ast.ImportFrom and node.module and not node.level:
            for alias in node.names:
                self._bind(alias.asname or alias.name, f"{node.module}.{alias.name}")
                if alias.name == "*":
                    self._star(node.module)
        elif kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            self._names.setdefault(node.name, [])  # the person's own

    def _assigns(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is not ast.Assign and kind is not ast.NamedExpr and kind is not ast.AnnAssign:
            return
        paths = [] if node.value is None else self._paths(node.value)
        for target in node.targets if kind is ast.Assign else [node.target]:
            if type(target) is ast.Name:
                self._names.setdefault(target.id, [])
                for path in paths:
                    self._bind(target.id, path)

    def _star(self, module: str) -> None:
        for path in rules.CALLS:
            owner, _, name = path.rpartition(".")
            if owner == _canonical(module):
                self._bind(name, path)

    def _bind(self, name: str, path: str) -> None:
        paths = self._names.setdefault(name, [])
        path = _canonical(path)
        if path not in paths and len(paths) < PATHS_MAX:
            paths.append(path)

    def _paths(self, node: ast.AST, depth: int = 0) -> list[str]:
        """The dotted names that an expression may stand for; none: something else."""
        kind = type(node)
        if depth > DEPTH_MAX:
            return []
        if kind is ast.Name:
            return self._name(node.id)
        if kind is ast.Attribute:
            return self._members(node.value, node.attr, depth)
        if kind is ast.Call:
            return self._called(node, depth)
        if kind is ast.Subscript:
            return self._item(node, depth)
        if kind is ast.NamedExpr:
            return self._paths(node.value, depth + 1)
        return []

    def _name(self, name: str) -> list[str]:
        if name in self._names:
            return self._names[name]
        if name == "get_ipython":
            return [name]
        if name in self._namespace:
            path = _path_of(self._namespace[name])
            return [path] if path else []
        if name in rules.BUILTINS:
            return [f"builtins.{name}"]
        return ["builtins"] if name == "__builtins__" else []

    def _members(self, owner: ast.AST, name: str, depth: int) -> list[str]:
        return [_canonical(f"{path}.{name}") for path in self._paths(owner, depth + 1)]

    def _called(self, node: ast.Call, depth: int) -> list[str]:
        """What a call gives, where constants tell."""
        texts = [_text(a) for a in node.args]
        for path in self._paths(node.func, depth + 1):
            name = path.rpartition(".")[2]
            if path in ("builtins.__import__", "importlib.import_module") and texts and texts[0]:
                return [_canonical(texts[0] if name == "import_module" else texts[0].partition(".")[0])]
            if path == "builtins.getattr" and len(texts) > 1 and texts[1]:
                return self._members(node.args[0], texts[1], depth)
            if path == "builtins.vars" and texts:
                return [f"{p}.__dict__" for p in self._paths(node.args[0], depth + 1)]
            if path in ("builtins.globals", "builtins.locals", "builtins.vars"):
                return ["globals()"]
            if path == "get_ipython":
                return ["get_ipython()"]
            if path == "operator.attrgetter" and texts and texts[0]:
                return [f"attrgetter().{texts[0]}"]
            if path.startswith("attrgetter().") and node.args:
                return self._members(node.args[0], path.partition(".")[2], depth)
            if path == "functools.partial" and node.args:
                return self._paths(node.args[0], depth + 1)
        return []

    def _item(self, node: ast.Subscript, depth: int) -> list[str]:
        """sys.modules["os"], vars(os)["system"], globals()["os"]"""
        key, paths = _text(node.slice), []
        for path in self._paths(node.value, depth + 1) if key else ():
            if path == "sys.modules":
                paths.append(_canonical(key))
            elif path == "globals()":
                paths += self._name(key)
            elif path.endswith(".__dict__") or path == "builtins":
                paths.append(_canonical(f"{path.removesuffix('.__dict__')}.{key}"))
        return paths

    # What is called

    def _call(self, node: ast.Call) -> None:
        for path in self._paths(node.func):
            self._judge(path, node)
        for value in (*node.args, *(k.value for k in node.keywords)):
            if type(value) in (ast.Name, ast.Attribute):
                self._use(value)
            else:
                self._constant(value, node.func)

    def _use(self, node: ast.AST) -> None:
        """Given to somebody who will call it."""
        for path in self._paths(node):
            kind = rules.CALLS.get(path)
            if kind and kind != rules.CODE:
                self._add(node, kind, path)

    def _judge(self, path: str, node: ast.Call) -> None:
        kind = _kind_of(path)
        first = _text(node.args[0]) if node.args else None
        if path in ("builtins.eval", "builtins.exec", "builtins.compile"):
            if first is not None:
                self._inner(first, node)
                return
            if not node.args or type(node.args[0]) is ast.Constant:
                return
        elif path.startswith("get_ipython().run_") and first:
            kind = rules.MAGICS.get(first.split()[0] if first.split() else "")
        elif kind == rules.PROCESS and any(k.arg == "shell" and not _is_false(k.value) for k in node.keywords):
            kind = rules.SHELL
        if kind:
            self._add(node, kind, path)
        if kind == rules.SHELL and any(_RM_TREE.search(_beginning(a) or "") for a in node.args):
            self._add(node, rules.DELETE, path)

    def _inner(self, code: str, node: ast.AST) -> None:
        """Code as a constant is read like the rest."""
        if self._nested >= NESTED_MAX or len(code) > CODE_MAX:
            self._add(node, rules.CODE, "nested code")
            return
        tree = _parse(code.strip())
        if tree is None:
            return
        line, self._line = self._line, self._line or node.lineno
        self._nested += 1
        self._tree(tree)
        self._nested -= 1
        self._line = line

    def _constant(self, node: ast.AST, called: ast.AST) -> None:
        text = _beginning(node)
        if not text or text[:1] not in "/hfsgw":
            return
        if text.startswith(rules.URLS):
            name = called.attr if type(called) is ast.Attribute else called.id if type(called) is ast.Name else ""
            if not name.startswith(rules.READERS):
                return
            self._add(node, rules.NETWORK, text)
        elif any(text == p or text.startswith(p + "/") for p in rules.KERNEL_PATHS) and not text.startswith(rules.HARMLESS_PATHS):
            self._add(node, rules.KERNEL, text)

    def _add(self, node: ast.AST, kind: str, what: str) -> None:
        what = what if what.isprintable() else ascii(what)
        self._found.add(Finding(self._line or node.lineno, kind, what[:WHAT_MAX].removeprefix("builtins.")))


def _parse(code: str) -> ast.AST | None:
    """None: it is no Python. Warnings are for when it runs."""
    try:
        if "\\" not in code:
            return _compile(code, "<check>", "exec", _AST_ONLY, True)
        with _quiet():
            _simplefilter("ignore")
            return _compile(code, "<check>", "exec", _AST_ONLY, True)
    except (SyntaxError, ValueError):
        return None


def _is_false(node: ast.AST) -> bool:
    return type(node) is ast.Constant and not node.value


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, without recursion; a little more than NODES_MAX of them at most."""
    queue, seen = [tree], 0
    while seen < len(queue) and seen <= NODES_MAX:
        node = queue[seen]
        seen += 1
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                queue += [v for v in value if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST):
                queue.append(value)
