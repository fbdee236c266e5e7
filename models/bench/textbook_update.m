-- style: textbook
-- verdict: verified
-- states: 114944
-- orbits: 352
--
-- Write-update protocol: a writer that holds the token of the line sends its value to all sharers, and releases the
-- token once each has acknowledged it.
type
  node: scalarset(7);
  value: 0..1;

var
  valid: array [node] of boolean;
  data: array [node] of value;
  update: array [node] of boolean;
  acknowledged: array [node] of boolean;
  holder: node;
  next_value: value;
  memory: value;

startstate
begin
  for n: node do
    valid[n] := false;
    update[n] := false;
    acknowledged[n] := true;
  end;
  memory := 0;
end;

ruleset n: node do
  rule "fetch" !valid[n] & isundefined(holder) ==>
  begin
    valid[n] := true;
    data[n] := memory;
  end;

  rule "drop" valid[n] & !update[n] & (isundefined(holder) | holder != n) & acknowledged[n] ==>
  begin
    valid[n] := false;
    undefine data[n];
  end;

  ruleset v: value do
    rule "write" isundefined(holder) & valid[n] ==>
    begin
      holder := n;
      next_value := v;
      for m: node do
        if valid[m] & m != n then
          update[m] := true;
          acknowledged[m] := false;
        end;
      end;
    end;
  end;

  rule "apply" update[n] ==>
  begin
    data[n] := next_value;
    update[n] := false;
  end;

  rule "acknowledge" !update[n] & !acknowledged[n] ==>
  begin
    acknowledged[n] := true;
  end;
end;

rule "complete" !isundefined(holder) & forall n: node do acknowledged[n] end ==>
begin
  memory := next_value;
  data[holder] := next_value;
  undefine holder;
  undefine next_value;
end;

invariant "one value"
  isundefined(holder) -> forall n: node do valid[n] -> data[n] = memory end;
