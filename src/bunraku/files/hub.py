"""Where a model's files lie: a folder the user names, or the local copy of a Hugging Face repository, fetched if it is not there yet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bunraku.errors import FileProblem


def model_folder(model: str | os.PathLike[str], files: Sequence[str], *, or_else: str, welcome: Sequence[str] = ()) -> Path:
    """The folder that holds these files (names, or patterns such as `*.safetensors`) of a model given as folder or as hub id.

    `welcome` files are fetched with them where there are any; `or_else` ends the sentence where the others cannot be had: what else to do.
    """
    folder = Path(model)
    if folder.is_dir():
        missing = [pattern for pattern in files if not any(folder.glob(pattern))]
        if missing:
            raise FileProblem(f"the folder '{folder}' has no {' and no '.join(missing)}; a model's folder holds {', '.join(files)}.")
        return folder
    if str(model).count("/") != 1 or str(model).startswith((".", "/", "~")):
        raise FileProblem(f"there is no folder '{model}', and a Hugging Face name looks like 'owner/model'; {or_else}")
    return _from_hub(str(model), files, welcome, or_else)


def _from_hub(name: str, files: Sequence[str], welcome: Sequence[str], or_else: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    patterns = [*files, *welcome]
    try:
        folder = Path(snapshot_download(name, allow_patterns=patterns, local_files_only=True))
        if all(any(folder.glob(pattern)) for pattern in files):
            return folder
    except LocalEntryNotFoundError:
        pass
    except HFValidationError as error:
        raise FileProblem(f"'{name}' is neither a folder nor a Hugging Face name; {or_else}") from error
    try:
        folder = Path(snapshot_download(name, allow_patterns=patterns))
    except GatedRepoError as error:
        remedy = "accept it on huggingface.co and run 'hf auth login'"
        raise FileProblem(f"'{name}' is given only to those who accepted its licence: {remedy}, or {or_else}") from error
    except RepositoryNotFoundError as error:
        raise FileProblem(f"Hugging Face has no model '{name}' (or hides it from you: 'hf auth login'); {or_else}") from error
    except Exception as error:  # whatever its HTTP library raises; it changes from version to version
        raise FileProblem(f"'{name}' is not in the local Hugging Face cache and could not be fetched ({type(error).__name__}); {or_else}") from error
    missing = [pattern for pattern in files if not any(folder.glob(pattern))]
    if missing:
        raise FileProblem(f"the Hugging Face model '{name}' has no {' and no '.join(missing)}; {or_else}")
    return folder
