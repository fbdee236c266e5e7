"""Waveforms of `cohkit rtl test`, read by GTKWave's library."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import cohkit


class Waveform:
    """Enumerated types of a waveform, and the values of their variables in order of time."""

    def __init__(self, file: Path) -> None:
        """Read all variables with an enumerated type.

        The file lists scopes and variables in order; the attribute with a table of names precedes its variable.
        """
        module: Any = importlib.import_module("pylibfst")
        lib, string = module.lib, module.string
        self.types: dict[str, dict[str, str]] = {}
        self.values: dict[str, list[str]] = defaultdict(list)
        reader = lib.fstReaderOpen(bytes(file))
        assert reader != module.ffi.NULL
        scopes: list[str] = []
        tables: dict[int, dict[str, str]] = {}
        table_of_handle: dict[int, dict[str, str]] = {}
        names: dict[int, list[str]] = defaultdict(list)
        table = None
        while (entry := lib.fstReaderIterateHier(reader)) != module.ffi.NULL:
            if entry.htyp == lib.FST_HT_SCOPE:
                scopes.append(string(entry.u.scope.name))
            elif entry.htyp == lib.FST_HT_UPSCOPE:
                scopes.pop()
            elif entry.htyp == lib.FST_HT_VAR:
                handle = entry.u.var.handle
                names[handle].append(".".join([*scopes, string(entry.u.var.name).split(" ")[0]]))
                if table is not None:
                    table_of_handle[handle] = tables[table]
                table = None
            elif entry.htyp == lib.FST_HT_ATTRBEGIN and entry.u.attr.subtype == lib.FST_MT_ENUMTABLE:
                attribute = entry.u.attr
                if attribute.name_length:
                    enum_table = lib.fstUtilityExtractEnumTableFromString(attribute.name)
                    pairs = [
                        (string(enum_table.val_arr[i]), string(enum_table.literal_arr[i]))
                        for i in range(enum_table.elem_count)
                    ]
                    tables[attribute.arg] = self.types[string(enum_table.name)] = dict(pairs)
                else:
                    table = attribute.arg

        def store_change(_reader: object, _time: int, handle: int, value: object) -> None:
            for name in names[handle] if handle in table_of_handle else []:
                self.values[name].append(table_of_handle[handle].get(string(value), "none of them"))

        lib.fstReaderSetFacProcessMaskAll(reader)
        module.fstReaderIterBlocks(reader, store_change)
        lib.fstReaderClose(reader)


def write_faulty_verilator(folder: Path) -> None:
    """Write a program `verilator` that seeds a fault into the home and builds it with waveforms.

    With the fault, the home loses a write to its directory. The test asks for two builds, without and with waveforms:
    the first build serves both, which saves time.
    """
    built_library, verilator_script = folder / "lockstep.so", folder / "verilator"
    real = shutil.which("verilator")
    verilator_script.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && exec {real} --version
[ -e {built_library} ] && exec cp {built_library} lockstep.so
sed -i 's/execute && (hit || row_keeps_entry_q)/execute \\&\\& row_keeps_entry_q/' dcu.sv
{real} "$@" --trace-fst --trace-structs -MAKEFLAGS "OPT_FAST=-O0 OPT_GLOBAL=-O0" && cp lockstep.so {built_library}
"""
    )
    verilator_script.chmod(0o755)


@pytest.mark.needs("verilator", "pylibfst")
def test_waveforms_have_the_names_of_the_states(tmp_path: Path, root: Path) -> None:
    """States and events of a waveform have the names of the protocol, up to the state of the mismatch."""
    write_faulty_verilator(tmp_path)
    file = tmp_path / "run.fst"
    folders = ["--build-cache", tmp_path / "built", "--waveform", file]
    options = ["--shape", "narrow", "--messages", "200", *folders, "--json"]
    command = map(
        str, [Path(sys.executable).parent / "cohkit", "rtl", "test", "protocols/back-invalidate.coh", *options]
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    completed = subprocess.run(
        [*command], cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (1, "")
    match = re.search(r"the home looks up the state (\S+)$", json.loads(completed.stdout)["mismatch"]["description"])
    assert match, completed.stdout
    waveform = Waveform(file)
    states = waveform.types["back_invalidate_pkg::state_e"]
    table = cohkit.table("protocols/back-invalidate.coh", merged=True)
    assert {*states.values()} == {row["state"] for row in table["rows"]}
    assert len(states) == table["states"]
    assert {"MemRdCur", "BIRspI"} <= {*waveform.types["back_invalidate_pkg::event_e"].values()}
    in_units = [[*name.split("."), values] for name, values in waveform.values.items() if ".u_dcu." in name]
    looked_up = [values for *_, name, values in in_units if name == "found_state"]
    assert match[1] in [values[-1] for values in looked_up]
    # Each of the two units reports the state in which it takes a step: several states, all of the protocol.
    step_states = [values for *_, name, values in in_units if name == "step_state_o"]
    assert len(step_states) == 2
    observed = {*step_states[0], *step_states[1]}
    assert len(observed) > 5
    assert observed <= {*states.values()}
