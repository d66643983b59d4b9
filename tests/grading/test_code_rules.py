"""More programs and tests of our own; the official harness was run on the same, and gave these verdicts (see docs)."""

from fot.grading.code import CodeGrader
from tests.grading.test_code import METHOD as M
from tests.grading.test_code import OPTIONS, calls, stdin

PROGRAMS = {
    "two numbers a line": (
        stdin(("3\n1 2\n3 4\n5 6\n", "3\n7\n11\n")),
        "n=int(input())\nfor _ in range(n):\n    a,b=map(int,input().split())\n    print(a+b)",
        "correct",
    ),
    "off by one line": (
        stdin(("3\n1 2\n3 4\n5 6\n", "3\n7\n11\n")),
        "n=int(input())\nfor _ in range(n-1):\n    a,b=map(int,input().split())\n    print(a+b)",
        "wrong",
    ),
    "float format": (stdin(("2", "0.333333333\n0.5")), "print('0.333333333')\nprint(1/2)", "correct"),
    "float short": (stdin(("2", "0.3333333333")), "print(1/3)", "wrong"),
    "negative zero": (stdin(("", "0.0")), "print('-0.0')", "correct"),
    "sci vs plain": (stdin(("", "0.00001")), "print(1e-05)", "correct"),
    "plus": (stdin(("", "5")), "print('+5')", "correct"),
    "underscore": (stdin(("", "1000")), "print('1_000')", "correct"),
    "nan": (stdin(("", "nan")), "print(float('nan'))", "correct"),
    "infinity": (stdin(("", "inf")), "print('Infinity')", "correct"),
    "tabs": (stdin(("", "1\t2")), "print('1 2')", "correct"),
    "word tabs": (stdin(("", "a\tb")), "print('a b')", "wrong"),
    "crlf out": (stdin(("", "1\n2")), "print('1\\r')\nprint('2\\r')", "correct"),
    "crlf expected": (stdin(("", "1\r\n2\r\n")), "print(1)\nprint(2)", "correct"),
    "mixed line": (stdin(("", "Case 1: 1.0")), "print('Case 1: 1')", "wrong"),
    "leading zeros": (stdin(("", "7")), "print('007')", "correct"),
    "YES numbers": (stdin(("", "YES\n3")), "print('YES')\nprint(3.0)", "correct"),
    "stdin iter": (stdin(("1\n2\n3", "6")), "import sys\nprint(sum(int(l) for l in sys.stdin))", "correct"),
    "readlines": (stdin(("1\n2\n3", "6")), "import sys\nprint(sum(int(l) for l in sys.stdin.readlines()))", "correct"),
    "input strip": (stdin(("  a  \n", "a")), "print(input().strip())", "correct"),
    "several answers": (stdin(("1", "1"), ("2", "4"), ("3", "9")), "n=int(input());print(n*n)", "correct"),
    "third fails": (stdin(("1", "1"), ("2", "4"), ("3", "9")), "n=int(input());print(n*n if n<3 else 8)", "wrong"),
    "class in stdin": (
        stdin(("1 2", "3")),
        "class A:\n    def go(self):\n        print(sum(map(int,input().split())))\nA().go()",
        "correct",
    ),
    "lambda rec": (
        stdin(("5", "120")),
        "def f(n):\n    return 1 if n<2 else n*f(n-1)\nprint(f(int(input())))",
        "correct",
    ),
    "print end": (stdin(("", "1 2 3")), "for i in (1,2,3): print(i,end=' ')", "correct"),
    "sys.exit in middle": (stdin(("", "1")), "import sys\nprint(1)\nsys.exit()\nprint(2)", "correct"),
    "sys.stdout.write": (stdin(("", "1")), "import sys\nsys.stdout.write('1')", "correct"),
    "zero div": (stdin(("0", "1")), "print(1//int(input()))", "wrong"),
    "name error": (stdin(("0", "1")), "print(undefined_name)", "wrong"),
    "unused eof": (stdin(("1\n", "1")), "print(input())", "correct"),
    "eof": (stdin(("1", "1")), "print(input());input()", "wrong"),
    "call list out": (calls("f", ("[3,1,2]", "[1,2,3]")), M.format("a", "sorted(a)"), "correct"),
    "call str": (calls("f", ('"ab"', '"ba"')), M.format("s", "s[::-1]"), "correct"),
    "call two": (calls("f", ("1\n2", "3"), ("5\n6", "11")), M.format("a,b", "a+b"), "correct"),
    "call second wrong": (calls("f", ("1\n2", "3"), ("5\n6", "11")), M.format("a,b", "3"), "wrong"),
    "call float": (calls("f", ("1", "0.5")), M.format("a", "a/2"), "correct"),
    "call float near": (calls("f", ("1", "0.3333333333")), M.format("a", "a/3"), "wrong"),
    "call bool": (calls("f", ("1", "true")), M.format("a", "a==1"), "correct"),
    "call bool int": (calls("f", ("1", "true")), M.format("a", "1"), "correct"),
    "call none": (calls("f", ("1", "1")), "class Solution:\n    def f(self,a):\n        a+1", "wrong"),
    "call tuple list": (calls("f", ("1", "[[1],[2]]")), M.format("a", "([1],[2])"), "correct"),
    "call inner tuples": (calls("f", ("1", "[[1],[2]]")), M.format("a", "[(1,),(2,)]"), "wrong"),
    "call generator": (calls("f", ("1", "[0]")), M.format("a", "range(1)"), "wrong"),
    "call deque": (calls("f", ("1", "[1]")), M.format("a", "deque([1])"), "wrong"),
    "call dict int keys": (calls("f", ("1", '{"1": 2}')), M.format("a", "{1: 2}"), "wrong"),
    "call defaultdict": (calls("f", ("1", '{"a": 2}')), M.format("a", "defaultdict(int,{'a':2})"), "correct"),
    "call nan": (calls("f", ("1", "NaN")), M.format("a", "float('nan')"), "wrong"),
    "call helper method": (
        calls("f", ("3", "6")),
        "class Solution:\n    def g(self,n): return n*2\n    def f(self,n): return self.g(n)",
        "correct",
    ),
    "call cached": (
        calls("f", ("30", "832040")),
        "class Solution:\n    @cache\n    def f(self,n): return n if n<2 else self.f(n-1)+self.f(n-2)",
        "correct",
    ),
    "call module-level use": (calls("f", ("1", "2")), "K=1\nclass Solution:\n    def f(self,a): return a+K", "correct"),
    "call typing names": (
        calls("f", ("[1]", "1")),
        "class Solution:\n    def f(self, a: List[int]) -> Optional[Tuple[int, ...]]:\n        return a[0]",
        "correct",
    ),
    "call mutates input": (
        calls("f", ("[1,2]", "[2,1]")),
        "class Solution:\n    def f(self,a):\n        a.reverse()\n        return a",
        "correct",
    ),
    "call huge int": (calls("f", ("1", str(2**70))), M.format("a", "2**70"), "correct"),
    "call raises second": (calls("f", ("1", "1"), ("0", "1")), M.format("a", "1//a"), "wrong"),
    "call set": (calls("f", ("1", "[1]")), M.format("a", "{1}"), "wrong"),
    "call str num": (calls("f", ("1", '"1"')), M.format("a", "1"), "wrong"),
    "call unicode": (calls("f", ('"é"', '"É"')), M.format("a", "a.upper()"), "correct"),
    "unicode out": (stdin(("é", "É")), "print(input().upper())", "correct"),
    "open 0": (stdin(("1 2", "3")), "print(sum(map(int,open(0).read().split())))", "correct"),
}


def test_further_verdicts_are_those_of_the_official_rules():
    with CodeGrader(OPTIONS) as judge:
        grades = judge.grade_all([(gold, program) for gold, program, _ in PROGRAMS.values()])
    found = {name: str(grade.verdict) for name, grade in zip(PROGRAMS, grades, strict=True)}
    assert found == {name: verdict for name, (_, _, verdict) in PROGRAMS.items()}
