"""What Hatchet and Thicket read from files of Caliper, as a line of JSON."""

import json
import sys

import hatchet
import thicket

rows = []
frame = hatchet.GraphFrame.from_caliperreader(sys.argv[1])
for _, row in frame.dataframe.reset_index().iterrows():
    path = [node.frame["name"] for node in row["node"].path()]
    rows.append(
        [int(row["rank"]), path, row["time"], row["calls"], row["bytes"], row["time (inc)"]]
    )
runs = thicket.Thicket.from_caliperreader(sys.argv[1:], disable_tqdm=True)
sizes = sorted(int(size) for size in runs.metadata["jobsize"])
print()
print(json.dumps({"rows": rows, "metadata": frame.metadata, "sizes": sizes}))
