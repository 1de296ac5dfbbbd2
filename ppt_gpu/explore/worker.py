"""A worker process: reads calls from standard input, writes what they return to standard output, both pickled."""

from __future__ import annotations

import logging
import os
import pickle
import traceback


def main() -> None:
    """Work until there is no more input: then whoever started this process has ended, too."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed must not come between answers
    logging.getLogger("ppt_gpu.store").setLevel(logging.ERROR)  # of a damaged cache each worker would say the same
    while True:
        try:
            function, argument = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = (True, function(argument))
        except BaseException:
            answer = (False, traceback.format_exc())
        try:
            pickle.dump(answer, answers)
            answers.flush()
        except OSError:
            return


if __name__ == "__main__":
    main()
