"""What keeps a model from being exported: `examine` finds it, `report_of_diagnoses` shows it."""

from rushlight.doctor.examine import Diagnosis, examine
from rushlight.doctor.report import report_of_diagnoses

__all__ = ["Diagnosis", "examine", "report_of_diagnoses"]
