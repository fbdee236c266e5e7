-- verdict: verified
-- deadlock: off
-- states: 117649
-- dialect: both
-- counted by: rumur
--
-- Three DMA engines move a block of 144 bytes, a third each, byte by byte in every interleaving: a large state (more than 300
-- bytes) of which each step changes little. Checked: every byte is either at its source or at its destination, unchanged.

const
  engines: 3;
  share: 48;

type
  engine: 0..engines - 1;
  place: 0..engines * share - 1;
  byte: 0..255;

var
  source: array [place] of byte;
  target: array [place] of byte;
  moved: array [engine] of 0..share;

ruleset e: engine do
  rule "move a byte"
    moved[e] < share
  ==>
  begin
    alias i: e * share + moved[e] do
      target[i] := source[i];
      undefine source[i];
    end;
    moved[e] := moved[e] + 1;
  end;
end;

startstate
begin
  for i: place do source[i] := (i * 7 + 3) % 256; end;
  for e: engine do moved[e] := 0; end;
end;

invariant "every byte is in one place"
  forall e: engine do forall k := 0 to share - 1 do
    isundefined(source[e * share + k]) = (k < moved[e]) & isundefined(target[e * share + k]) = (k >= moved[e])
  end end;

invariant "values arrive"
  forall i: place do isundefined(target[i]) | target[i] = (i * 7 + 3) % 256 end;
