"""Draw the picture of the README: a join of a pruned scan with an index scan, on three members.

python examples/explain_picture.py docs/images/explain.svg

The data is always the same; times are those of the machine.
"""

from __future__ import annotations

import random
import sys

import pyarrow as pa

import remuda

PRODUCTS, ORDERS, CUSTOMERS = 20_000, 400_000, 500
QUERY = """\
SELECT o.customer, o.id, p.name, p.price
FROM orders o JOIN products p ON p.id = o.product
WHERE o.customer IN (7, 42, 99) AND p.price >= 980 AND p.name LIKE '%gold%'"""


def make_shop() -> remuda.Grid:
    """Return a grid with orders, which lie in partitions by customer, and products, with an index on the price."""
    grid = remuda.open(members=3)
    grid.sql("CREATE TABLE products (id BIGINT, name VARCHAR, price DOUBLE, PRIMARY KEY (id))")
    grid.sql(
        "CREATE TABLE orders (customer BIGINT, id BIGINT, product BIGINT, quantity INTEGER, "
        "PRIMARY KEY (customer, id)) PARTITION BY (customer)"
    )
    choice = random.Random(42)
    metals = ["gold", "iron", "silver", "tin"]
    products = {
        "id": list(range(PRODUCTS)),
        "name": [f"{choice.choice(metals)} ring {number}" for number in range(PRODUCTS)],
        "price": [round(choice.random() * 1000, 2) for _ in range(PRODUCTS)],
    }
    orders = {
        "customer": [choice.randrange(CUSTOMERS) for _ in range(ORDERS)],
        "id": list(range(ORDERS)),
        "product": [choice.randrange(PRODUCTS) for _ in range(ORDERS)],
        "quantity": pa.array([choice.randrange(1, 6) for _ in range(ORDERS)], pa.int32()),
    }
    grid.load("products", pa.table(products))
    grid.load("orders", pa.table(orders))
    grid.sql("CREATE INDEX products_price ON products (price) TYPE SORTED")
    return grid


def main(path: str) -> None:
    """Run the query twice, so that nothing is measured that happens only once, and save the second picture."""
    with make_shop() as grid:
        grid.explain(QUERY, analyze=True)
        grid.explain(QUERY, analyze=True).save(path)


if __name__ == "__main__":
    main(sys.argv[1])
