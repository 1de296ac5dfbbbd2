from ppt_gpu.cli import main

raise SystemExit(main())
