var x: 0..3;
function f(): 0..3; begin error "no"; end;
startstate begin x := 0; end;
rule begin x := f(); end;
