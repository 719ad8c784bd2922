"""The games that come with the framework, a folder each."""

import pkgutil

# another package of this name on Python's path can be imported as well
__path__ = pkgutil.extend_path(__path__, __name__)
