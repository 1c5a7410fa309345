"""Queries with sub-queries in every place, correlated in every way, for maps r and s with columns id, a, b, c."""

from __future__ import annotations

SCALARS = (
    "SELECT COUNT(*) FROM s WHERE s.a = r.a",
    "SELECT COUNT(s.b) FROM s WHERE s.a = r.a AND s.b > 0",
    "SELECT SUM(s.b) FROM s WHERE s.a = r.a",
    "SELECT COUNT(*) FROM s WHERE s.a < r.b",
    "SELECT MAX(s.b) FROM s WHERE s.a <> r.a OR s.b = r.b",
    "SELECT COUNT(*) + r.id FROM s WHERE s.a = r.a",
    "SELECT COALESCE(SUM(s.b), -1) FROM s WHERE s.a = r.a AND s.b < r.b",
    "SELECT COUNT(DISTINCT s.b) FROM s WHERE s.a = r.a",
    "SELECT s.b + r.b FROM s WHERE s.id = r.a",
    "SELECT s.b FROM s WHERE s.id = r.id",
    "SELECT MIN(s.b) FROM s WHERE s.a = r.a HAVING COUNT(*) > 1",
    "SELECT COUNT(*) FROM s WHERE s.a = r.a GROUP BY s.a",
    "SELECT s.b FROM s WHERE s.a = r.a ORDER BY s.b NULLS LAST, s.id LIMIT 1",
    "SELECT s.b FROM s WHERE s.a < r.b ORDER BY s.b DESC NULLS LAST, s.id LIMIT 1 OFFSET 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT s.b FROM s WHERE s.a = r.a) AS d",
    "SELECT COUNT(*) FROM (SELECT s.b FROM s WHERE s.a = r.a UNION ALL SELECT r.b) AS d",
    "SELECT SUM(d.b) FROM (SELECT s.b FROM s WHERE s.a = r.a UNION SELECT s.id FROM s WHERE s.b = r.b) AS d(b)",
    "SELECT COUNT(*) FROM (SELECT s.b FROM s WHERE s.a = r.a INTERSECT SELECT s.a FROM s) AS d",
    "SELECT COUNT(*) FROM (SELECT s.b FROM s EXCEPT SELECT t.b FROM r AS t WHERE t.a = r.a) AS d",
    "SELECT MAX(d.n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY s.b ORDER BY s.id) AS n FROM s WHERE s.a = r.a) AS d",
    "SELECT COUNT(*) FROM s LEFT JOIN r AS t ON s.b = t.b AND t.a = r.a",
    "SELECT COUNT(t.id) FROM s LEFT JOIN (SELECT * FROM r AS u WHERE u.a = r.a) AS t ON s.b = t.b",
    "SELECT COUNT(*) FROM s FULL JOIN (SELECT * FROM r AS u WHERE u.a = r.a) AS t ON s.b = t.b",
    "SELECT SUM(v.x) FROM (VALUES (r.a), (r.b), (1)) AS v(x)",
    "SELECT r.a",
    "SELECT r.a WHERE r.b > 1",
    "SELECT (SELECT COUNT(*) FROM r AS t WHERE t.a = s.a AND t.b = r.b) FROM s WHERE s.id = r.id",
    "SELECT SUM((SELECT COUNT(*) FROM r AS t WHERE t.a = s.a AND t.b <> r.b)) FROM s WHERE s.a = r.a",
    "SELECT COUNT(*) FROM s WHERE EXISTS (SELECT 1 FROM r AS t WHERE t.a = s.a AND t.b = r.b)",
    "SELECT COUNT(*) FROM s WHERE s.a NOT IN (SELECT t.a FROM r AS t WHERE t.b = r.b)",
    "SELECT COUNT(*) FROM s, r AS t WHERE s.a = t.a AND t.b = r.b",
    "SELECT MAX(s.a) FROM s WHERE s.b = (SELECT MIN(t.b) FROM s AS t WHERE t.a = r.a)",
)

PREDICATES = (
    "EXISTS (SELECT * FROM s WHERE s.a = r.a)",
    "NOT EXISTS (SELECT * FROM s WHERE s.a = r.a AND s.b <> r.b)",
    "EXISTS (SELECT 1 FROM s WHERE s.a > r.a LIMIT 1)",
    "EXISTS (SELECT COUNT(*) FROM s WHERE s.a = r.a)",
    "EXISTS (SELECT s.a FROM s WHERE s.b = r.b GROUP BY s.a HAVING COUNT(*) > 1)",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a UNION ALL SELECT 2 FROM s WHERE s.b = r.b)",
    "NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a ORDER BY s.b LIMIT 1 OFFSET 1)",
    "r.a IN (SELECT s.a FROM s)",
    "r.a NOT IN (SELECT s.a FROM s)",
    "r.a NOT IN (SELECT s.a FROM s WHERE s.b = r.b)",
    "r.id NOT IN (SELECT s.id FROM s)",
    "r.id NOT IN (SELECT s.id FROM s WHERE s.a = r.a)",
    "(r.a, r.b) IN (SELECT s.a, s.b FROM s)",
    "(r.a, r.b) NOT IN (SELECT s.a, s.b FROM s)",
    "r.a > ANY (SELECT s.b FROM s WHERE s.a = r.a)",
    "r.a <= ALL (SELECT s.b FROM s)",
    "r.a <= ALL (SELECT s.b FROM s WHERE s.a = r.b)",
    "r.a = ANY (SELECT s.b FROM s WHERE s.a < r.b)",
    "r.a IN (SELECT MAX(s.a) FROM s WHERE s.b = r.b)",
    "r.a NOT IN (SELECT SUM(s.a) FROM s WHERE s.b = r.b)",
    "r.a IN (SELECT s.a FROM s WHERE s.b = r.b ORDER BY s.id LIMIT 2)",
    "r.a IN (SELECT s.a FROM s WHERE s.b = r.b GROUP BY s.a HAVING COUNT(*) > 1)",
    "r.b > (SELECT COUNT(*) FROM s WHERE s.a = r.a)",
    "r.b = (SELECT MAX(s.b) FROM s WHERE s.a = r.a)",
    "(SELECT MAX(s.b) FROM s WHERE s.a = r.a) IS NULL",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b IN (SELECT t.b FROM r AS t WHERE t.a = r.a))",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT 1 FROM r AS t WHERE t.b = s.b AND t.a = r.b))",
    "EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b > (SELECT COUNT(*) FROM r AS t WHERE t.b = r.b))",
    "r.a IN (SELECT s.a FROM s) OR r.b = 1",
    "(r.a IN (SELECT s.a FROM s)) IS NULL",
    "COALESCE(r.a NOT IN (SELECT s.b FROM s WHERE s.a = r.a), r.b > 0)",
)

WHOLE = (
    "SELECT r.id, x.* FROM r, LATERAL (SELECT s.id AS sid, s.b + r.b AS sum FROM s WHERE s.a = r.a) AS x",
    "SELECT r.id, x.sid FROM r LEFT JOIN LATERAL (SELECT s.id AS sid FROM s WHERE s.a = r.a) AS x ON TRUE",
    "SELECT r.id, x.sid FROM r LEFT JOIN LATERAL (SELECT s.id AS sid, s.b FROM s WHERE s.a = r.a) AS x ON x.b > r.b",
    "SELECT r.id, x.n FROM r CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM s WHERE s.a = r.a) AS x",
    "SELECT r.id, x.i FROM r, LATERAL (SELECT s.id AS i FROM s WHERE s.a = r.a ORDER BY s.id DESC LIMIT 2) AS x",
    "SELECT r.id, i FROM r LEFT JOIN LATERAL (SELECT s.id AS i FROM s WHERE s.a < r.b ORDER BY i LIMIT 1) AS x ON TRUE",
    "SELECT r.id, x.v, y.w FROM r, LATERAL (SELECT r.a + 1 AS v) AS x, LATERAL (SELECT x.v + r.b AS w) AS y",
    "SELECT a, SUM(b) FROM r GROUP BY a HAVING SUM(b) > (SELECT COUNT(*) FROM s WHERE s.a = r.a)",
    "SELECT a, COUNT(*), (SELECT MAX(s.b) FROM s WHERE s.a = r.a) FROM r GROUP BY a",
    "SELECT SUM((SELECT COUNT(*) FROM s WHERE s.a = r.a)) FROM r",
    "SELECT r.id FROM r ORDER BY (SELECT COUNT(*) FROM s WHERE s.a = r.a), r.id",
    "SELECT r.id FROM r JOIN s ON r.a = s.a AND s.b > (SELECT MIN(t.b) FROM s AS t WHERE t.a = r.b)",
    "SELECT r.id, s.id FROM r LEFT JOIN s ON r.a = s.a AND EXISTS (SELECT 1 FROM r AS t WHERE t.b = s.b)",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.a = r.a) THEN r.b ELSE (SELECT MIN(s.b) FROM s) END FROM r",
    "SELECT r.id FROM r WHERE r.a = 1 AND r.b IN (SELECT s.b FROM s WHERE s.a = r.a)",
    "SELECT DISTINCT r.a FROM r WHERE r.b < (SELECT AVG(s.b) FROM s WHERE s.a = r.a)",
    "SELECT (SELECT COUNT(*) FROM s WHERE s.a = d.a) FROM (SELECT a FROM r ORDER BY id LIMIT 3) AS d",
    "SELECT (SELECT COUNT(*) FROM s WHERE s.a < d.a) FROM (SELECT a FROM r ORDER BY id LIMIT 3) AS d",
    "SELECT r.id, s.id FROM r LEFT JOIN s ON r.a = s.a WHERE s.id IS NULL",
    "SELECT r.id, s.id FROM r LEFT JOIN s ON r.a = s.a AND s.b > 1 WHERE s.b < 3 OR s.b IS NULL",
    "SELECT r.id, s.id FROM r FULL JOIN s ON r.a = s.a WHERE r.b = 1",
    "SELECT r.id, s.id FROM r FULL JOIN s ON r.a = s.a AND r.b = 1 WHERE s.b IS NOT NULL",
    "SELECT r.id, s.id FROM r RIGHT JOIN s ON r.a = s.a AND r.b = 1 WHERE COALESCE(r.b, 1) = 1",
    "SELECT r.id, s.id FROM r JOIN s ON r.a = s.a WHERE r.a = 1",
    "SELECT r.id, s.id FROM r LEFT JOIN s ON r.a = s.a WHERE r.a IN (1, 2)",
    "SELECT r.id FROM r JOIN s ON (r.a = s.a AND r.b = 1 AND s.b = 2) OR (r.a = s.a AND r.b = 2 AND s.b = 1)",
    "SELECT r.id, t.id FROM r LEFT JOIN s ON r.a = s.a JOIN r AS t ON t.b = s.b",
    "SELECT * FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM s) AS u WHERE a = 1",
    "SELECT * FROM (SELECT a, COUNT(*) OVER (PARTITION BY a) AS n, b FROM r) AS u WHERE a = 1 AND b = 2",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT id, n FROM r JOIN t ON a = n",
    "SELECT id FROM r WHERE NOT (a = 1 OR NOT (b > 1))",
    "SELECT a, b, COUNT(*) FROM r GROUP BY ROLLUP (a, b) HAVING a = 1",
)


def queries() -> list[str]:
    """Scalars in the select list and in WHERE, predicates in WHERE, negated and in the select list."""
    made = list(WHOLE)
    made += [f"SELECT r.id, ({scalar}) FROM r" for scalar in SCALARS]
    made += [f"SELECT r.id FROM r WHERE ({scalar}) > 0" for scalar in SCALARS]
    made += [f"SELECT r.id FROM r WHERE {predicate}" for predicate in PREDICATES]
    made += [f"SELECT r.id FROM r WHERE NOT ({predicate})" for predicate in PREDICATES]
    made += [f"SELECT r.id, {predicate} FROM r" for predicate in PREDICATES]
    made += [f"SELECT COUNT(*) FROM r WHERE {predicate} AND r.b > 0" for predicate in PREDICATES]
    return made
