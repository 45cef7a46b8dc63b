"""Reads a trace by the definitions that Perfetto publishes, and prints its slices as JSON, in the order of their begins: the names of
its track and those above it, its name, begin and end in ns, arguments, and the numbers of arrows that begin and end in it. The value
of a counter is a slice without a length, named after its track."""

import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
tracks, state, open_slices, slices = {}, {}, {}, []
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    if packet.sequence_flags & 1:
        state[sequence] = ({}, {}, {})
    names, annotations, texts = state[sequence]
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        tracks[track.uuid] = (track.name, track.parent_uuid)
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_names:
        annotations[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_string_values:
        texts[entry.iid] = entry.str.decode()
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    path, track = [], event.track_uuid
    while track:
        name, track = tracks[track]
        path.insert(0, name)
    if event.type == TrackEvent.TYPE_COUNTER:
        of = {"name": path[-1], "begin": packet.timestamp, "end": packet.timestamp, "track": path, "from": [], "to": []}
        of["arguments"] = {"value": event.double_counter_value}
        slices.append(of)
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        arguments = {}
        for of in event.debug_annotations:
            is_number = of.WhichOneof("value") == "int_value"
            arguments[annotations[of.name_iid]] = of.int_value if is_number else texts[of.string_value_iid]
        of = {"name": names[event.name_iid], "begin": packet.timestamp, "arguments": arguments}
        of["track"], of["from"], of["to"] = path, list(event.flow_ids), []
        open_slices.setdefault(event.track_uuid, []).append(of)
        slices.append(of)
    elif event.type == TrackEvent.TYPE_SLICE_END:
        of = open_slices[event.track_uuid].pop()
        of["end"], of["to"] = packet.timestamp, list(event.terminating_flow_ids)
assert not any(open_slices.values())
json.dump(slices, sys.stdout)
