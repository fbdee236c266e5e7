-- verdict: rejected
-- dialect: cmurphi
--
-- CMurphi needs a rule.
var n: 0..3;
startstate begin n := 0; end;
