"""What pycubexr reads from a file of Cube, as a line of JSON."""

import json
import sys

from pycubexr import CubexParser

rows = []
with CubexParser(sys.argv[1]) as cube:
    (machine,) = cube._anchor_result.system_tree_nodes
    ranks = [int(group.rank) for group in machine.all_location_groups()]
    metrics = ["time", "visits", "bytes"]
    values = [cube.get_metric_values(cube.get_metric_by_name(name)) for name in metrics]
    for node in cube.all_cnodes():
        path, above = [], node
        while above is not None:
            path.insert(0, cube.get_region(above).name)
            above = above.parent
        numbers = [value.cnode_values(node) for value in values]
        for at, rank in enumerate(ranks):
            rows.append([rank, path, *(float(number[at]) for number in numbers)])
print(json.dumps({"rows": rows}))
