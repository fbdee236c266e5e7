startstate begin end; rule begin end;
