"""Races, crashes and histories under load."""
