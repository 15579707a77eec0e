"""The report page: one HTML file that shows what rows tell, without anything from elsewhere.

>>> from tempfile import mkdtemp
>>> row = {"data": "digits", "corruption": "fog", "severity": 5, "method": "source", "accuracy": 0.5}
>>> write_page([row], mkdtemp()).name
'index.html'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
