"""The models that Extra-P makes of a file, as a line of JSON: of each number the powers of p and of its logarithm.

usage: read_extrap.py FILE [allow_negative_exponents]
"""

import json
import sys

from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
from extrap.modelers.model_generator import ModelGenerator
from extrap.modelers.single_parameter.basic import SingleParameterModeler

experiment = read_jsonlines_file(sys.argv[1])
generator = ModelGenerator(experiment)
if "allow_negative_exponents" in sys.argv[2:]:
    modeler = SingleParameterModeler()
    modeler.allow_negative_exponents = True
    generator = ModelGenerator(experiment, modeler=modeler)
generator.model_all()
models = []
for (callpath, metric), model in generator.models.items():
    terms = model.hypothesis.function.compound_terms
    powers = {term.term_type: float(term.exponent) for of in terms for term in of.simple_terms}
    models.append(
        [callpath.name, metric.name, powers.get("polynomial", 0.0), powers.get("logarithm", 0.0)]
    )
print(json.dumps(models))
