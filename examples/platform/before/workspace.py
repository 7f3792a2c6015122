"""A directory for each analysis, as the platform has it."""
import os
import shutil


def create_analysis_temp_dir(analysis_id):
    path = f'/tmp/scidex-analysis-{analysis_id}'
    os.makedirs(path, exist_ok=True)
    return path


def cleanup_analysis_temp_dir(analysis_id):
    shutil.rmtree(f'/tmp/scidex-analysis-{analysis_id}', ignore_errors=True)
