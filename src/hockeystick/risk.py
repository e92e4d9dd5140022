def advantage(*a): pass
def tradeoff(*a): pass
def mu_gdp(*a): pass
