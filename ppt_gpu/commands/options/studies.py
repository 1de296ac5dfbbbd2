"""Options of the commands with many predictions."""

from __future__ import annotations

from ppt_gpu.commands.options.arguments import AddCommand, add_choices, add_gpu, add_run, add_workload, count

#: what `study` can show
PARTS = ("accuracy", "representative", "warps", "mshrs", "bandwidth", "stacks", "speed")


def _add_sweep(command: AddCommand) -> None:
    sweep = command("sweep", "sweep:run", "Predict a kernel over a grid of parameters; carry on after being stopped.")
    add_workload(sweep)
    add_choices(sweep, "a parameter and its values: sm.count=8:64:8, dram.bandwidth='288 GB/s,576 GB/s', block=64,128")
    sweep.add_argument(
        "--metric",
        action="append",
        metavar="TAG",
        help="a column: time, a metric (`explain` lists them), stall.REASON, or 2:TAG of the second launch; repeatable "
        "(default: time, kernel.cycles, limiter)",
    )
    sweep.add_argument("--sample", type=int, metavar="N", help="only N of the configurations, at random by --seed")
    sweep.add_argument("-o", "--to", metavar="FILE", help="write .csv or .json; FILE.journal lets the sweep carry on")
    sweep.add_argument("--plot", metavar="FILE", help="draw the first metric: .png, .svg or .pdf")
    add_run(sweep)


def _add_what_if(command: AddCommand) -> None:
    what_if = command("what-if", "what_if:run", "Say which single change of the GPU helps a kernel most.")
    add_workload(what_if)
    add_gpu(what_if)
    what_if.add_argument(
        "--parameter", action="append", default=[], metavar="KEY", help="only this parameter; repeatable"
    )
    what_if.add_argument("--factor", type=float, default=2.0, help="how much better each becomes (default: 2)")
    what_if.add_argument("--step", type=float, default=0.1, help="share up and down for elasticities (default: 0.1)")
    add_run(what_if)


def _add_tune(command: AddCommand) -> None:
    tune = command("tune", "tune:run", "Find the fastest form of a kernel: block size, registers, macros, other files.")
    add_workload(tune)
    add_choices(
        tune,
        "what to try: block=64,128,16x16, registers=32,48 (a limit for ptxas), define.UNROLL=1,2,4 "
        "(default: blocks, then registers)",
    )
    tune.add_argument("--variant", action="append", default=[], metavar="FILE", help="another file of the kernel, too")
    tune.add_argument(
        "--gpu-set", action="append", default=[], metavar="KEY=VALUE", help="change one number of the GPU"
    )
    add_run(tune)


def _add_design(command: AddCommand) -> None:
    design = command("design", "design:run", "Find the cheapest hypothetical GPU that reaches a target time.")
    add_workload(design)
    add_choices(design, "a parameter of the GPU and its values, such as sm.count=8:64:8; one value is fixed")
    design.add_argument("--target", required=True, metavar="TIME", help="at most so long, such as '5 ms'")
    design.add_argument(
        "--cost",
        required=True,
        metavar="EXPRESSION",
        help="what a GPU costs: \"12*sm.count + dram.bandwidth/'1 GB/s'*0.1\"",
    )
    design.add_argument("--all", action="store_true", help="simulate every configuration, for the whole Pareto front")
    design.add_argument("-o", "--gpu-file", metavar="FILE", help="write the GPU as a .toml file")
    design.add_argument("--plot", metavar="FILE", help="draw time over cost (implies --all): .png, .svg or .pdf")
    add_run(design)


def _add_fit(command: AddCommand) -> None:
    fit = command(
        "fit", "fit:run", "Fit Mem_LD and the departure delays of Hong and Kim's model to their micro-benchmarks."
    )
    add_gpu(fit)
    fit.add_argument(
        "--measured", metavar="FILE", help="CSV of measured times (docs/mwp_cwp.md); default: the simulation's"
    )
    fit.add_argument("--iterations", type=count, default=200, metavar="N", help="of each loop that is simulated")


def _add_calibrate(command: AddCommand) -> None:
    calibrate = command("calibrate", "calibrate:run", "Find the numbers of a hardware file from micro-benchmarks.")
    calibrate.add_argument("gpu", nargs="?", help="a GPU of the reference simulator: its calibrated numbers again")
    calibrate.add_argument(
        "--with", dest="launches", metavar="FILE", help="its launches (default: validation/gpgpusim/launches.csv)"
    )
    calibrate.add_argument("--capture", metavar="FILE", help="a measured GPU: the CSV of the capture kit")
    calibrate.add_argument("--base", metavar="GPU", help="for --capture: the GPU or file whose other numbers are kept")
    calibrate.add_argument(
        "-o", dest="hardware", metavar="FILE", help="for --capture: write the hardware file (.toml) here"
    )


def _add_study(command: AddCommand) -> None:
    study = command("study", "study:run", "Hold the analytical models against the simulation on GPUMech's machine.")
    study.add_argument(
        "part",
        nargs="?",
        default="accuracy",
        choices=PARTS,
        help="accuracy (default) by model and policy; representative: ways to choose the representative warp; warps, "
        "mshrs or bandwidth: mean errors over a sweep; stacks: CPI stacks beside the simulation; speed: the interval "
        "model's CPU time beside the simulation's",
    )
    study.add_argument("--case", action="append", default=[], metavar="TEXT", help="only launches whose name has TEXT")
    study.add_argument("--plot", metavar="FILE", help="draw it: .png, .svg or .pdf")


def add(command: AddCommand) -> None:
    _add_sweep(command)
    _add_what_if(command)
    _add_tune(command)
    _add_design(command)
    _add_fit(command)
    _add_calibrate(command)
    _add_study(command)
