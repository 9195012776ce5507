"""Expressions of a query → SQL of the engine. The engine never sees text of the client.

Names become quoted columns of the input, literals are written anew, and operators and functions come from tables.
"""

from verditer.core import dates
from verditer.services.blob.query import functions
from verditer.services.blob.query.functions import AGGREGATES, FUNCTIONS, KEPT
from verditer.services.blob.query.tokens import Name, SqlToken, TokenReader, invalid_query
from verditer.services.blob.query.values import (
    BOOLEAN,
    NUMBER,
    OTHER,
    TEXT,
    TIMESTAMP,
    Conversions,
    Expression,
    Resolve,
    literal,
)

MAX_SQL_LENGTH = 1 << 20  # of all values: some functions repeat what they are given, so nested ones grow exponentially
LARGEST_INT = (1 << 63) - 1
MAX_DIGITS = 19
_COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=")
_TYPES = {
    "INT": "int", "FLOAT": NUMBER, "DOUBLE": NUMBER, "NUMERIC": NUMBER, "DECIMAL": NUMBER, "STRING": TEXT, "TIMESTAMP": TIMESTAMP,
    "BOOLEAN": BOOLEAN, "BOOL": BOOLEAN,
}  # fmt: skip


class ExpressionParser:
    def __init__(self, reader: TokenReader, resolve: Resolve, conversions: Conversions, now: int) -> None:
        self._reader = reader
        self._resolve = resolve
        self._conversions = conversions
        self._now = now
        self._sql_length = 0
        self.aggregates = 0

    def expression(self) -> Expression:
        self._reader.deeper()
        left = self._conjunction()
        while self._reader.accept("OR"):
            left = Expression(f"({self._condition(left)} OR {self._condition(self._conjunction())})", BOOLEAN)
        self._reader.higher()
        return left

    def condition(self) -> str:
        return self._condition(self.expression())

    def _condition(self, given: Expression) -> str:
        return self._conversions.boolean(given) if given.kind in (TEXT, BOOLEAN) else given.sql

    def _conjunction(self) -> Expression:
        left = self._negation()
        while self._reader.accept("AND"):
            left = Expression(f"({self._condition(left)} AND {self._condition(self._negation())})", BOOLEAN)
        return left

    def _negation(self) -> Expression:
        if not self._reader.accept("NOT"):
            return self._comparison()
        self._reader.deeper()
        inner = Expression(f"(NOT {self._condition(self._negation())})", BOOLEAN)
        self._reader.higher()
        return inner

    def _comparison(self) -> Expression:
        left = self._sum()
        token = self._reader.token
        if token.kind == "symbol" and token.text in _COMPARISONS:
            self._reader.next()
            return self._conversions.compared(left, token.text, self._sum())
        if self._reader.accept("IS"):
            return self._tested(left)
        negated = "NOT " if self._reader.accept("NOT") else ""
        if self._reader.accept("IN"):
            return Expression(f"({negated}({self._options(left)}))", BOOLEAN)
        if self._reader.accept("BETWEEN"):
            low = self._conversions.compared(left, ">=", self._sum()).sql
            self._reader.expect("AND")
            return Expression(f"({negated}({low} AND {self._conversions.compared(left, '<=', self._sum()).sql}))", BOOLEAN)
        if self._reader.accept("LIKE"):
            pattern = self._conversions.text(self._sum())
            escape = f" ESCAPE {self._conversions.text(self._sum())}" if self._reader.accept("ESCAPE") else ""
            return Expression(f"({self._conversions.text(left)} {negated}LIKE {pattern}{escape})", BOOLEAN)
        if negated:
            raise invalid_query(self._reader.token.position, "NOT is followed by IN, BETWEEN or LIKE.")
        return left

    def _tested(self, left: Expression) -> Expression:
        negated = "NOT " if self._reader.accept("NOT") else ""
        if self._reader.accept("MISSING"):
            return Expression(f"({left.raw or left.sql} IS {negated}NULL)", BOOLEAN)
        if self._reader.accept("NULL"):
            return Expression(f"({left.sql} IS {negated}NULL)", BOOLEAN)
        raise invalid_query(self._reader.token.position, "IS is followed by NULL or MISSING.")

    def _options(self, left: Expression) -> str:
        self._reader.expect("(")
        options: dict[str, list[str]] = {}  # by what they are compared with: `left` in a type
        while not options or self._reader.accept(","):
            _, (one, option) = self._conversions.alike(left, self._sum())
            options.setdefault(one, []).append(option)
        self._reader.expect(")")
        return " OR ".join([f"{one} IN ({', '.join(several)})" for one, several in options.items()])

    def _sum(self) -> Expression:
        left = self._product()
        while self._reader.token.kind == "symbol" and self._reader.token.text in ("+", "-"):
            operator, right = self._reader.next().text, self._product()
            if left.kind == TIMESTAMP:  # a number of days
                left = Expression(f"({left.sql} {operator} to_days({self._conversions.small(right)}))", TIMESTAMP)
            else:
                left = Expression(f"({self._conversions.number(left)} {operator} {self._conversions.number(right)})", NUMBER)
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while self._reader.token.kind == "symbol" and self._reader.token.text in ("*", "/", "%"):
            operator, right = self._reader.next().text, self._unary()
            left = Expression(f"({self._conversions.number(left)} {operator} {self._conversions.number(right)})", NUMBER)
        return left

    def _unary(self) -> Expression:
        if not self._reader.accept("-"):
            return self._primary()
        self._reader.deeper()
        inner = Expression(f"(- {self._conversions.number(self._unary())})", NUMBER)
        self._reader.higher()
        return inner

    def _primary(self) -> Expression:
        token = self._reader.next()
        found = self._value(token)
        self._sql_length += len(found.sql)
        if self._sql_length > MAX_SQL_LENGTH:
            raise invalid_query(token.position, "it is too complex.")
        return found

    def _value(self, token: SqlToken) -> Expression:
        if token.kind == "number":
            return Expression(_number(token.text), NUMBER)
        if token.kind == "text":
            return Expression(literal(token.value), TEXT, literal=token.value)
        if token.kind == "keyword":
            return self._special(token)
        if token.kind == "symbol" and token.text == "(":
            inner = self.expression()
            self._reader.expect(")")
            return Expression(f"({inner.sql})", inner.kind)
        if token.kind == "word" and self._reader.is_symbol("("):
            return self._call(token)
        if token.kind in ("word", "quoted"):
            return self._resolve((Name(token.name, token.kind == "quoted"), *self._reader.path_rest()), token.position)
        raise invalid_query(token.position, "a value was expected.")

    def _special(self, token: SqlToken) -> Expression:
        if token.text in ("TRUE", "FALSE"):
            return Expression(token.text, BOOLEAN)
        if token.text == "NULL":
            return Expression("NULL", OTHER)
        if token.text == "CAST":
            return self._cast()
        if token.text == "CASE":
            return self._case()
        raise invalid_query(token.position, "a value was expected.")

    def _cast(self) -> Expression:
        self._reader.expect("(")
        inner = self.expression()
        self._reader.expect("AS")
        token = self._reader.next()
        kind = _TYPES.get(token.text.upper()) if token.kind == "word" else None
        if kind is None:
            raise invalid_query(token.position, "there is no such type.")
        self._reader.expect(")")
        if kind == "int":
            return Expression(self._conversions.integer(inner), NUMBER)
        if kind == NUMBER:
            return Expression(f"CAST({self._conversions.number(inner)} AS DOUBLE)", NUMBER)
        return Expression(self._conversions.to(kind, inner), kind)

    def _case(self) -> Expression:
        conditions, results = [], []
        while self._reader.accept("WHEN"):
            conditions.append(self.condition())
            self._reader.expect("THEN")
            results.append(self.expression())
        if not conditions:
            raise invalid_query(self._reader.token.position, "CASE is followed by WHEN.")
        results.append(self.expression() if self._reader.accept("ELSE") else Expression("NULL"))
        self._reader.expect("END")
        kinds = {one.kind for one in results} - {OTHER}
        kind = kinds.pop() if len(kinds) == 1 else TEXT if kinds else OTHER
        *values, otherwise = [self._conversions.to(kind, one) for one in results]
        parts = [f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=True)]
        return Expression(f"CASE {' '.join(parts)} ELSE {otherwise} END", kind)

    # --- functions ----------------------------------------------------------------------------------------------------------

    def _call(self, token: SqlToken) -> Expression:
        name = token.text.upper()
        self._reader.expect("(")
        if name in AGGREGATES:
            return self._aggregate(name, token)
        if name == "TRIM":
            return self._trim()
        if name == "EXTRACT":
            return self._extract()
        if name in ("DATE_ADD", "DATE_DIFF"):
            return self._date(name)
        arguments = self._arguments()
        if name == "UTCNOW" and not arguments:
            return Expression(f"text_to_time({literal(dates.iso(self._now))})", TIMESTAMP)
        if name == "TO_STRING" and len(arguments) == 2:
            return functions.to_string(self._conversions, arguments[0], arguments[1], token.position)
        known = FUNCTIONS.get(name)
        if known is None and name not in ("UTCNOW", "TO_STRING"):
            raise invalid_query(token.position, f"there is no function {token.text}.")
        if known is None or not known.fewest <= len(arguments) <= known.most:
            raise invalid_query(token.position, f"{token.text} takes another number of arguments.")
        return known.build(self._conversions, arguments)

    def _arguments(self) -> list[Expression]:
        """What is left until the closing parenthesis."""
        if self._reader.accept(")"):
            return []
        arguments = [self.expression()]
        while self._reader.accept(","):
            arguments.append(self.expression())
        self._reader.expect(")")
        return arguments

    def _aggregate(self, name: str, token: SqlToken) -> Expression:
        self.aggregates += 1
        seen = self.aggregates
        inner, kind = "*", NUMBER
        if not (name == "COUNT" and self._reader.accept("*")):
            argument = self.expression()
            inner = self._conversions.number(argument) if name in ("SUM", "AVG", "AVERAGE") else argument.sql
            kind = argument.kind if name in ("MIN", "MAX") else NUMBER
        if self.aggregates != seen:
            raise invalid_query(token.position, "an aggregate has no aggregate inside.")
        self._reader.expect(")")
        return Expression(f"{AGGREGATES[name]}({inner}) FILTER (WHERE {KEPT})", kind)

    def _trim(self) -> Expression:
        """`TRIM(x)`, `TRIM(LEADING FROM x)`, `TRIM(BOTH '12' FROM x)`."""
        side = "BOTH"
        for each in functions.TRIMS:
            if self._reader.is_word(each):
                side = each
                self._reader.next()
                break
        first = None if self._reader.accept("FROM") else self.expression()
        text = self.expression() if first is None or self._reader.accept("FROM") else None
        self._reader.expect(")")
        if text is None:
            assert first is not None
            return functions.trimmed(self._conversions, side, None, first)
        return functions.trimmed(self._conversions, side, first, text)

    def _extract(self) -> Expression:
        part = functions.date_part(self._reader.next(), "timezone_hour", "timezone_minute")
        self._reader.expect("FROM")
        time = self.expression()
        self._reader.expect(")")
        return functions.extracted(self._conversions, part, time)

    def _date(self, name: str) -> Expression:
        token = self._reader.next()
        part = functions.date_part(token)
        self._reader.expect(",")
        arguments = self._arguments()
        if len(arguments) != 2:
            raise invalid_query(token.position, f"{name} takes another number of arguments.")
        build = functions.date_add if name == "DATE_ADD" else functions.date_diff
        return build(self._conversions, part, *arguments)


def _number(text: str) -> str:
    """The engine would give a larger number a type of its own."""
    if text.isdigit() and (len(text) > MAX_DIGITS or int(text) > LARGEST_INT):
        return f"CAST('{text}' AS DOUBLE)"
    return text if text[-1] != "." else f"{text}0"
