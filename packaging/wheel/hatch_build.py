"""Version and platform of the wheel, as packaging/make says."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Metadata(MetadataHookInterface):
    def update(self, metadata):
        metadata["version"] = os.environ["GYAN_WHEEL_VERSION"]


class Build(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        # For any Python: nothing is linked against it.
        build_data["tag"] = "py3-none-" + os.environ["GYAN_WHEEL_PLATFORM"]
