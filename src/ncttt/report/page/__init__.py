"""The report page: one HTML file that shows what rows tell, without anything from elsewhere.

>>> from tempfile import mkdtemp
>>> row = {"data": "digits", "corruption": "fog", "severity": 5, "method": "source", "accuracy": 0.5}
>>> write_page([row], mkdtemp()).name
'index.html'
"""

from ncttt.report.page.examples import Example, examples_of
from ncttt.report.page.luck import Judged, judge
from ncttt.report.page.writing import write_page

__all__ = ["Example", "Judged", "examples_of", "judge", "write_page"]
